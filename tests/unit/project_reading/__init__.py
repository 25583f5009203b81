"""What a project says about itself, and the riseml.yml that fits."""
