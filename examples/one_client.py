"""A client on its own: the server announces terms, the client answers from two numbers it keeps to itself."""

from fedpcs.game import best_response, make_game, solve, uniform

# The server's side: solve for the population it expects, announce rewards and mean budgets.
found = solve(make_game(uniform(num_clients=100, seed=0), last_round=30), 8.0)
terms = found.terms

# The client's side: nothing but the announcement, its aversion and its initial budget.
for privacy_aversion, initial_budget in ((0.1, 10.0), (0.5, 10.0), (0.9, 10.0), (0.9, 1.0)):
    answer = best_response(terms, privacy_aversion, initial_budget)
    print(
        f"aversion {privacy_aversion}, starts at {initial_budget:4.1f}: ends at {answer.budget[-1]:5.2f}, "
        f"expects to earn {answer.utility:7.1f}"
    )
