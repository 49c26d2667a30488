"""Programs of all producers in one form: one function of modern, static StableHLO; what is refused is refused here."""
