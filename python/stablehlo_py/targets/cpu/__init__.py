"""The host's CPU: kernels to native code, called by a Program."""
