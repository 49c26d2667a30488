"""Programs of all producers in one form: one function of modern, static StableHLO; what is refused is refused here."""

from stablehlo_py.core.passes import wait_for

wait_for({"hlo-custom-calls": "stablehlo.custom_call"})
