"""What all emitters write with: loops and vectors on buffers, addresses, transposes in registers, loops that stay in order."""
