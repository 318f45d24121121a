"""The verdict's sentences in Chinese."""

SENTENCES = {
    "only_rung": (
        "只运行了 {rung:name} 一级：在{view:word}上 {metric:word}为 {mean:score}（{low:score}–{high:score}），取 "
        "{num_seeds:seeds}的均值。没有可比较的对象。"
    ),
    "best_clear": (
        "在{view:word}上，{num_rungs:count} 级中 {rung:name} 最好：{metric:word} {mean:score}（{low:score}–"
        "{high:score}），取 {num_seeds:seeds}的均值。其余各级均被检验证明较差；比第二名 {runner_up:name} 高 "
        "{difference:points}（单独看 {difference_low:pt} 至 {difference_high:pt}；经多重比较校正 {p_holm:p}）。"
    ),
    "best_leads": (
        "在{view:word}上，{num_rungs:count} 级中 {rung:name} 的均值最高：{metric:word} {mean:score}（{low:score}–"
        "{high:score}），取 {num_seeds:seeds}的均值。检验不能把它与 {tied:names} 区分开，但能与其余各级区分。比第二"
        "名 {runner_up:name} 高 {difference:points}（单独看 {difference_low:pt} 至 {difference_high:pt}；经多重比较"
        "校正 {p_holm:p}）。"
    ),
    "all_tied": (
        "在{view:word}上没有明确的胜者。{rung:name} 的均值最高，{metric:word} {mean:score}（{low:score}–"
        "{high:score}；{num_seeds:seeds}），但 {num_rungs:count} 级中没有一级被证明较差。比 {runner_up:name} 高 "
        "{difference:points}（单独看 {difference_low:pt} 至 {difference_high:pt}；经多重比较校正 {p_holm:p}）。"
    ),
    # In few words: what to do, which rung leads, and why to choose as said.
    "use_only_rung": "只运行了 {rung:name} 一级。",
    "use_best_is_cheapest": "选用 {rung:name}。",
    "use_cheaper_as_good": "选用 {rung:name}。",
    "use_cheaper_as_good_no_loss": "选用 {rung:name}。",
    "use_cheaper_unproven": "暂且选用 {rung:name}。",
    "short_only_rung": "没有可比较的对象。",
    "short_best_clear": "{num_rungs:count} 级中 {rung:name} 最好，其余各级均被证明较差。",
    "short_best_leads": (
        "{num_rungs:count} 级中 {rung:name} 的均值最高；其余各级中有 {tied:count} 级，检验不能把它们与之区分开。"
    ),
    "short_all_tied": ("没有明确的胜者：{rung:name} 的均值最高，但 {num_rungs:count} 级中没有一级被证明较差。"),
    "short_best_is_cheapest": (
        "没有明显更便宜、又被证明大致同样好的一级。{rung:name} 训练需 {train_seconds:seconds}。"
    ),
    "short_cheaper_as_good": (
        "{rung:name} 是与 {best:name} 大致同样好的各级中最便宜的：低 {loss:points}，训练需 "
        "{train_seconds:seconds}，而不是 {train_seconds_best:seconds}。"
    ),
    "short_cheaper_as_good_no_loss": (
        "{rung:name} 是与 {best:name} 大致同样好的各级中最便宜的：没有损失，训练需 {train_seconds:seconds}，而不是 "
        "{train_seconds_best:seconds}。"
    ),
    "short_cheaper_unproven": (
        "{candidate:name} 更便宜，也可能同样好，但这一检验无法证明：最多可能低 {loss_high:points}。"
    ),
    "short_test_too_small": "测试集太小，不足以下定论：增加测试样本会有帮助。",
    "short_test_too_small_none": "测试集太小，不足以下定论：增加测试样本会有帮助。",
    "short_seeds_too_few": "随机种子太少，不足以下定论：多于 {num_seeds:count} 个会有帮助。",
    "short_seeds_too_few_none": "随机种子太少，不足以下定论：多于 {num_seeds:count} 个会有帮助。",
    "short_leak_only_winner": (
        "当心副本：去掉泄漏的测试样本后，{rung:name} 对 {rival:name} 的领先从 {difference:points}降为 "
        "{clean_difference:points}。"
    ),
    "short_views_differ": "去掉泄漏的测试样本后，{clean_best:name} 高于 {rung:name}；领先并不明确。",
    "scored": "{rung:name} {mean:score}（{low:score}–{high:score}）",
    "cheaper_as_good": (
        "{rung:name} 是与 {best:name} 相差在误差之内的最便宜的一级：低 {loss:points}，区间远端最多低 "
        "{loss_high:points}，在允许的 {margin:points}之内。训练需 {train_seconds:seconds}，而后者需 "
        "{train_seconds_best:seconds}；每条预测 {latency_seconds:seconds}，后者 {latency_seconds_best:seconds}；大"
        "小 {model_bytes:size}，后者 {model_bytes_best:size}。"
    ),
    "cheaper_as_good_no_loss": (
        "{rung:name} 是与 {best:name} 相差在误差之内的最便宜的一级，在两者共有的随机种子上没有损失（{loss:points}，"
        "最多 {loss_high:points}）。训练需 {train_seconds:seconds}，而后者需 {train_seconds_best:seconds}；每条预测"
        " {latency_seconds:seconds}，后者 {latency_seconds_best:seconds}；大小 {model_bytes:size}，后者 "
        "{model_bytes_best:size}。"
    ),
    "best_is_cheapest": (
        "没有明显更便宜、又与 {best:name} 相差在误差之内的一级（允许 {margin:points}），因此就用它。训练需 "
        "{train_seconds:seconds}。"
    ),
    "cheaper_unproven": (
        "{candidate:name} 比 {best:name} 便宜，未被证明较差，但也未被证明同样好：最多可能低 {loss_high:points}（实"
        "测 {loss:points}），超过允许的 {margin:points}。在弄清之前，选用 {rung:name}。"
    ),
    "not_separable_items": (
        "{num_items:count} 条测试样本不能区分 {first:name} 与 {second:name}：若真实差异为 {difference:points}，要以"
        " {power:percent} 的功效发现它，约需 {items_needed:about} 条。"
    ),
    "not_separable_items_enough": (
        "这里未能区分 {first:name} 与 {second:name}，尽管 {num_items:count} 条测试样本中约 {items_needed:about} 条"
        "通常就足以发现 {difference:points}的真实差异（功效 {power:percent}）。检验偶尔会漏判；更多样本或随机种子可"
        "以弄清。"
    ),
    "not_separable_seeds": (
        "{first:name} 与 {second:name} 相差 {difference:points}，不能区分，增加测试样本也无济于事："
        "{num_seeds:seeds}之间的差异太大。请增加随机种子。"
    ),
    "not_separable_no_difference": (
        "{first:name} 与 {second:name} 实际上相当（相差 {difference:points}）：再多的测试样本也难以区分。"
    ),
    "test_too_small": (
        "测试集太小，不足以回答问题：{num_items:count} 条样本、{num_seeds:seeds}只能发现 "
        "{minimum_detectable_difference:points}以上的差异（功效 {power:percent}），而允许的差异是 {margin:points}。"
        "增加测试样本会有帮助。"
    ),
    "test_too_small_none": (
        "测试集太小，不足以回答问题：{num_items:count} 条样本、{num_seeds:seeds}以 {power:percent} 的功效发现不了任"
        "何差异，而允许的差异是 {margin:points}。增加测试样本会有帮助。"
    ),
    "seeds_too_few": (
        "随机种子太少，不足以回答问题：{num_seeds:seeds}、{num_items:count} 条样本只能发现 "
        "{minimum_detectable_difference:points}以上的差异（功效 {power:percent}），而允许的差异是 {margin:points}。"
        "增加随机种子会有帮助，增加测试样本则不会。"
    ),
    "seeds_too_few_none": (
        "随机种子太少，不足以回答问题：{num_seeds:seeds}、{num_items:count} 条样本以 {power:percent} 的功效发现不了"
        "任何差异，而允许的差异是 {margin:points}。增加随机种子会有帮助，增加测试样本则不会。"
    ),
    "test_finds": (
        "用 {num_items:count} 条测试样本和 {num_seeds:seeds}，两级之间 {minimum_detectable_difference:points}以上的"
        "差异通常能够发现（功效 {power:percent}）。"
    ),
    "test_finds_none": (
        "用 {num_items:count} 条测试样本和 {num_seeds:seeds}，每一级要么被证明比最好的差，要么被证明与之相当（允许 "
        "{margin:points}）；更细的问题超出这一检验的能力（功效 {power:percent}）。"
    ),
    "ingredient_adds": (
        "{ingredient:name} 的贡献：{difference:points}（{low:pt} 至 {high:pt}；{p_holm:p}），{with:name} 对 "
        "{without:name}。"
    ),
    "ingredient_costs": (
        "{ingredient:name} 带来的损失：{difference:loss}，{with:name} 对 {without:name}（差异 {low:pt} 至 "
        "{high:pt}；{p_holm:p}）。"
    ),
    "ingredient_unclear": (
        "{ingredient:name} 是否有贡献未得到证明：{difference:points}（{low:pt} 至 {high:pt}；{p_holm:p}），"
        "{with:name} 对 {without:name}。"
    ),
    "one_seed": "至少有一级只用一个随机种子运行，其区间和检验不反映不同种子训练结果的差异。",
    "none_clean": "没有第二种口径：{num_items:count} 条测试样本中，能评分的样本无一不在训练集或验证集中有副本。",
    "no_leaks": "{num_items:count} 条测试样本在训练集和验证集中都没有副本或近似副本，结论只依据未见过的文本。",
    "leak_only_winner": (
        "当心副本：去掉 {num_items:count} 条测试样本中泄漏的 {num_leaked:count} 条后，{rung:name} 对 {rival:name} "
        "的领先从 {difference:points}降为 {clean_difference:points}（{clean_low:pt} 至 {clean_high:pt}）。领先可能"
        "来自训练时见过的文本。"
    ),
    "lead_not_confirmed": (
        "在 {num_clean:count} 条无泄漏测试样本上，{rung:name} 对 {rival:name} 的领先为 {clean_difference:points}（"
        "{clean_low:pt} 至 {clean_high:pt}），不再显著；在全部样本上为 {difference:points}。领先幅度相近，只是样本"
        "少了。"
    ),
    "views_agree": (
        "去掉泄漏文本后情况相同：在 {num_items:count} 条测试样本中的 {num_clean:count} 条无泄漏样本上，{rung:name} "
        "比 {rival:name} 高 {clean_difference:points}，在全部样本上高 {difference:points}。"
    ),
    "views_agree_alone": (
        "在 {num_items:count} 条测试样本中的 {num_clean:count} 条无泄漏样本上，{rung:name} 的{metric:word}为 "
        "{clean_mean:score}，在全部样本上为 {mean:score}。"
    ),
    "views_differ": (
        "哪一级领先取决于口径：在 {num_items:count} 条测试样本中的 {num_clean:count} 条无泄漏样本上，"
        "{clean_best:name} 比 {rung:name} 高 {clean_difference:loss}；在全部样本上 {rung:name} 高 "
        "{difference:points}。这一领先并不明确。"
    ),
    # Where one rung starts to pay over another, from the label curve.
    "crosses": "从约 {num_labels:about} 条标注（{low:part} 至 {high:part}）起，{rung:name} 开始优于 {over:name}。",
    "ahead_throughout": (
        "从 {first_count:count} 到 {last_count:count} 条标注，{rung:name} 始终优于 {over:name}：起点高 "
        "{difference_at_first:points}，终点高 {difference_at_last:points}。"
    ),
    "not_within_data": (
        "在现有数据内 {rung:name} 不优于 {over:name}：{last_count:count} 条标注时相差 {difference_at_last:points}（"
        "{share_ahead_at_end:percent} 的重抽样中前者领先）。"
    ),
    "low_below": "少于 {first_count:count} 条",
    "low_within": "{low:about}",
    "low_beyond": "多于 {last_count:count} 条",
    "high_below": "少于 {first_count:count} 条",
    "high_within": "{high:about}",
    "high_beyond": "多于 {last_count:count} 条",
    "interval": "{low:score}–{high:score}",
    "points_interval": "{difference:pt}（{low:pt} 至 {high:pt}）",
}
"""A template per kind of sentence; kinds with a suffix are variants that lack or turn a fact."""
