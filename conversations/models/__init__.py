"""Language models: one contract, its variants, and the offline model that ships in place of mocks."""
