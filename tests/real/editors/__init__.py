"""riseml.yml in editors."""
