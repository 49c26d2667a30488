"""The command line: stablehlo-opt and shlo."""
