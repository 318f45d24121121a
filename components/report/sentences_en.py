"""The verdict's sentences in English."""

SENTENCES = {
    "only_rung": (
        "Only {rung:name} was run: {metric:word} {mean:score} ({low:score}–{high:score}) on {view:word}, mean of "
        "{num_seeds:seeds}. There is nothing to compare it with."
    ),
    "best_clear": (
        "{rung:name} is the best of {num_rungs:count} rungs on {view:word}: {metric:word} {mean:score} "
        "({low:score}–{high:score}), mean of {num_seeds:seeds}. Every other rung is shown to be worse; the "
        "runner-up, {runner_up:name}, by {difference:points} (taken alone {difference_low:pt} to "
        "{difference_high:pt}; {p_holm:p} after correction for all its comparisons)."
    ),
    "best_leads": (
        "{rung:name} has the highest mean of {num_rungs:count} rungs on {view:word}: {metric:word} {mean:score} "
        "({low:score}–{high:score}), mean of {num_seeds:seeds}. The tests do not separate it from {tied:names}, "
        "but do from all others. Its lead over the runner-up, {runner_up:name}, is {difference:points} (taken "
        "alone {difference_low:pt} to {difference_high:pt}; {p_holm:p} after correction for all its comparisons)."
    ),
    "all_tied": (
        "There is no clear winner on {view:word}. {rung:name} has the highest mean, {metric:word} {mean:score} "
        "({low:score}–{high:score}; {num_seeds:seeds}), but none of the {num_rungs:count} rungs is shown to be "
        "worse. Its lead over {runner_up:name} is {difference:points} (taken alone {difference_low:pt} to "
        "{difference_high:pt}; {p_holm:p} after correction for all its comparisons)."
    ),
    # In few words: what to do, which rung leads, and why to choose as said.
    "use_only_rung": "Only {rung:name} was run.",
    "use_best_is_cheapest": "Use {rung:name}.",
    "use_cheaper_as_good": "Use {rung:name}.",
    "use_cheaper_as_good_no_loss": "Use {rung:name}.",
    "use_cheaper_unproven": "Use {rung:name}, for now.",
    "short_only_rung": "There is nothing to compare it with.",
    "short_best_clear": "{rung:name} is the best of {num_rungs:count} rungs; every other is shown to be worse.",
    "short_best_leads": (
        "{rung:name} has the highest mean of {num_rungs:count} rungs; {tied:count} of the others cannot be told from "
        "it by the tests."
    ),
    "short_all_tied": (
        "There is no clear winner: {rung:name} has the highest mean, but none of the {num_rungs:count} rungs is shown "
        "to be worse."
    ),
    "short_best_is_cheapest": (
        "Nothing clearly cheaper is shown to be about as good. {rung:name} trains in {train_seconds:seconds}."
    ),
    "short_cheaper_as_good": (
        "{rung:name} is the cheapest that is about as good as {best:name}: it loses {loss:points} and trains in "
        "{train_seconds:seconds} instead of {train_seconds_best:seconds}."
    ),
    "short_cheaper_as_good_no_loss": (
        "{rung:name} is the cheapest that is about as good as {best:name}: it loses nothing and trains in "
        "{train_seconds:seconds} instead of {train_seconds_best:seconds}."
    ),
    "short_cheaper_unproven": (
        "{candidate:name} is cheaper and may be as good, but this test cannot show it: the loss may be up to "
        "{loss_high:points}."
    ),
    "short_test_too_small": "The test is too small to settle this: more test items would help.",
    "short_test_too_small_none": "The test is too small to settle this: more test items would help.",
    "short_seeds_too_few": "There are too few seeds to settle this: more than {num_seeds:count} would help.",
    "short_seeds_too_few_none": "There are too few seeds to settle this: more than {num_seeds:count} would help.",
    "short_leak_only_winner": (
        "Beware of copies: without leaked test items the lead of {rung:name} over {rival:name} falls from "
        "{difference:points} to {clean_difference:points}."
    ),
    "short_views_differ": (
        "Without leaked test items {clean_best:name} is ahead of {rung:name}; the lead is not a clear one."
    ),
    "scored": "{rung:name} {mean:score} ({low:score}–{high:score})",
    "cheaper_as_good": (
        "{rung:name} is the cheapest rung within noise of {best:name}: it loses {loss:points}, and at most "
        "{loss_high:points} at the far end of the interval, within the margin of {margin:points}. It trains in "
        "{train_seconds:seconds} instead of {train_seconds_best:seconds}, answers in {latency_seconds:seconds} an "
        "item instead of {latency_seconds_best:seconds}, and takes {model_bytes:size} instead of "
        "{model_bytes_best:size}."
    ),
    "cheaper_as_good_no_loss": (
        "{rung:name} is the cheapest rung within noise of {best:name}, and on the seeds that both were run with it "
        "loses nothing ({loss:points}, at most {loss_high:points}). It trains in {train_seconds:seconds} instead "
        "of {train_seconds_best:seconds}, answers in {latency_seconds:seconds} an item instead of "
        "{latency_seconds_best:seconds}, and takes {model_bytes:size} instead of {model_bytes_best:size}."
    ),
    "best_is_cheapest": (
        "No rung that is clearly cheaper comes within noise of {best:name} (margin {margin:points}), so it is also "
        "the one to use. It trains in {train_seconds:seconds}."
    ),
    "cheaper_unproven": (
        "{candidate:name} is cheaper than {best:name} and not shown to be worse, but not shown to be as good "
        "either: it may lose up to {loss_high:points} (measured: {loss:points}), more than the margin of "
        "{margin:points}. Until that is settled, {rung:name} is the choice."
    ),
    "not_separable_items": (
        "{first:name} and {second:name} are not separable on the {num_items:count} test items: a true difference "
        "of {difference:points} is found with {power:percent} power from about {items_needed:about} items on."
    ),
    "not_separable_items_enough": (
        "{first:name} and {second:name} are not separated here, although about {items_needed:about} of the "
        "{num_items:count} test items would usually do for a true difference of {difference:points} "
        "({power:percent} power). Such a test misses at times; more items or seeds would settle it."
    ),
    "not_separable_seeds": (
        "{first:name} and {second:name}, {difference:points} apart, are not separable, and more test items would "
        "not help: it is the results of {num_seeds:seeds} that differ too much among themselves. Run more seeds."
    ),
    "not_separable_no_difference": (
        "{first:name} and {second:name} are practically equal ({difference:points} apart): no realistic number of "
        "test items would separate them."
    ),
    "test_too_small": (
        "The test is too small for the question: with {num_items:count} items and {num_seeds:seeds} it finds only "
        "differences from {minimum_detectable_difference:points} on ({power:percent} power), and the margin is "
        "{margin:points}. More test items would help."
    ),
    "test_too_small_none": (
        "The test is too small for the question: with {num_items:count} items and {num_seeds:seeds} no difference "
        "is found with {power:percent} power, and the margin is {margin:points}. More test items would help."
    ),
    "seeds_too_few": (
        "There are too few seeds for the question: with {num_seeds:seeds} on {num_items:count} items the test "
        "finds only differences from {minimum_detectable_difference:points} on ({power:percent} power), and the "
        "margin is {margin:points}. More seeds would help, more test items would not."
    ),
    "seeds_too_few_none": (
        "There are too few seeds for the question: with {num_seeds:seeds} on {num_items:count} items no difference "
        "is found with {power:percent} power, and the margin is {margin:points}. More seeds would help, more test "
        "items would not."
    ),
    "test_finds": (
        "With {num_items:count} test items and {num_seeds:seeds}, typically a difference of "
        "{minimum_detectable_difference:points} or more between two rungs is found ({power:percent} power)."
    ),
    "test_finds_none": (
        "With {num_items:count} test items and {num_seeds:seeds}, every rung is either shown to be worse than the "
        "best or to be about as good (margin {margin:points}); smaller questions are beyond this test "
        "({power:percent} power)."
    ),
    "ingredient_adds": (
        "What {ingredient:name} adds: {difference:points} ({low:pt} to {high:pt}; {p_holm:p}), {with:name} against "
        "{without:name}."
    ),
    "ingredient_costs": (
        "What {ingredient:name} takes away: {difference:loss}, {with:name} against {without:name} (difference "
        "{low:pt} to {high:pt}; {p_holm:p})."
    ),
    "ingredient_unclear": (
        "Whether {ingredient:name} adds anything is not shown: {difference:points} ({low:pt} to {high:pt}; "
        "{p_holm:p}), {with:name} against {without:name}."
    ),
    "one_seed": (
        "At least one rung was run with one seed only, so its interval and tests know nothing of how much training "
        "varies from seed to seed."
    ),
    "none_clean": (
        "There is no second view: of the {num_items:count} test items none that can be scored is free of copies in "
        "the training or validation split."
    ),
    "no_leaks": (
        "None of the {num_items:count} test items has a copy or near copy in the training or validation split, so "
        "the verdict rests on unseen texts only."
    ),
    "leak_only_winner": (
        "Beware of copies: without the {num_leaked:count} leaked ones of {num_items:count} test items, the lead of "
        "{rung:name} over {rival:name} falls from {difference:points} to {clean_difference:points} ({clean_low:pt} "
        "to {clean_high:pt}). It may come from texts that training had already seen."
    ),
    "lead_not_confirmed": (
        "On the {num_clean:count} never-leaked test items the lead of {rung:name} over {rival:name} is "
        "{clean_difference:points} ({clean_low:pt} to {clean_high:pt}) and no longer significant; on all items it "
        "is {difference:points}. The lead is about as large, the items are fewer."
    ),
    "views_agree": (
        "It is the same without leaked texts: on the {num_clean:count} never-leaked of {num_items:count} test "
        "items {rung:name} is ahead of {rival:name} by {clean_difference:points}, on all by {difference:points}."
    ),
    "views_agree_alone": (
        "On the {num_clean:count} never-leaked of {num_items:count} test items {rung:name} has {metric:word} "
        "{clean_mean:score}, on all {mean:score}."
    ),
    "views_differ": (
        "Which rung leads depends on the view: on the {num_clean:count} never-leaked of {num_items:count} test "
        "items {clean_best:name} is ahead of {rung:name} by {clean_difference:loss}; on all, {rung:name} by "
        "{difference:points}. That lead is not a clear one."
    ),
    # Where one rung starts to pay over another, from the label curve.
    "crosses": (
        "{rung:name} starts to pay over {over:name} at about {num_labels:about} labels ({low:part} to {high:part})."
    ),
    "ahead_throughout": (
        "{rung:name} is ahead of {over:name} at every number of labels that was run, from {first_count:count} to "
        "{last_count:count}: {difference_at_first:points} at first, {difference_at_last:points} at the end."
    ),
    "not_within_data": (
        "{rung:name} does not pay over {over:name} within your data: with {last_count:count} labels it is "
        "{difference_at_last:points} apart ({share_ahead_at_end:percent} of resamples have it ahead)."
    ),
    "low_below": "fewer than {first_count:count}",
    "low_within": "{low:about}",
    "low_beyond": "more than {last_count:count}",
    "high_below": "fewer than {first_count:count}",
    "high_within": "{high:about}",
    "high_beyond": "more than {last_count:count}",
    "interval": "{low:score}–{high:score}",
    "points_interval": "{difference:pt} ({low:pt} to {high:pt})",
}
"""A template per kind of sentence; kinds with a suffix are variants that lack or turn a fact."""
