"""What contributors run: shell scripts, and the package that draws the pictures of the architecture."""
