"""Privacy that holds: budgets, conversions, mechanisms, a ledger, an audit."""
