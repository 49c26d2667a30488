"""The passes of the TPU-like target, in the order of pipelines/tpu.pipeline: products, convolutions and moves to mxu kernels."""
