"""The table and the summary of bench/chances."""
import collections
import datetime

from peer_workers import geometric_mean, median_and_spread, table_row

GAIN = 1.15  # an expert's gain that counts, and how close to the expert's plan a plan must come
SLACK_MS = 0.01
MAX_CELL = 120
PROVEN = ("equivalent", "equivalent-after-refit")
HEADER = ["name", "kind", "baseline ms", "plan ms", "expert plan ms", "expert gain", "plan's share", "verdict", "verify s", "search s",
          "mutants of the plan"]
KIND_HEADER = ["kind", "variants", "proven", "expert gain", "plan gain", "expert gains", "plan reaches", "partial may win", "what"]


def cell(text):
    return text if len(text) <= MAX_CELL else text[:MAX_CELL - 3] + "..."


def table(head, rows):
    return [table_row(head), "|" + "---|" * len(head)] + [table_row(cell(str(one)) for one in row) for row in rows]


class Gains:
    """What a measured row says: medians in milliseconds and their ratios."""

    def __init__(self, row):
        (self.baseline, self.baseline_text), (self.plan, self.plan_text), (self.expert, self.expert_text) = (
            median_and_spread(row["rounds"][name]) for name in ("baseline", "plan", "expert"))
        self.expert_gain, self.plan_gain = self.baseline / self.expert, self.baseline / self.plan
        self.counts = self.expert_gain >= GAIN
        self.reached = self.plan <= GAIN * self.expert + SLACK_MS


def cells(row):
    """A row's cells. A row of verdicts only has no rounds; a failed one has a sentence."""
    measured = ["-"] * 5
    if "rounds" in row:
        gains = Gains(row)
        measured = [gains.baseline_text, gains.plan_text, gains.expert_text, f"{gains.expert_gain:.2f}",
                    f"{gains.plan_gain / gains.expert_gain:.2f}"]
    if "failed" in row:
        measured[0] = f"failed: {row['failed']}"
    mutants = ", ".join(f"{rule} {count}" for rule, count in sorted(row.get("mutants", {}).items())) or "-"
    seconds = [f"{row[name]:.1f}" if name in row else "-" for name in ("verify_seconds", "search_seconds")]
    return [row["name"], row["kind"], *measured, row.get("verdict", "-"), *seconds, mutants]


def share(reached, counted):
    return f"{reached} of {counted}" if counted else "-"


def kind_rows(rows, kinds):
    groups = collections.defaultdict(list)
    for row in rows:
        groups[row["kind"]].append(row)
    for name, own in sorted(groups.items()):
        gains = [Gains(row) for row in own if "rounds" in row]
        counted = [one for one in gains if one.counts]
        means = [f"{geometric_mean(values):.2f}" if values else "-"
                 for values in ([one.expert_gain for one in gains], [one.plan_gain for one in gains])]
        yield [name, len(own), sum(row.get("verdict") in PROVEN for row in own), *means, len(counted) if gains else "-",
               share(sum(one.reached for one in counted), len(counted)), "yes" if kinds[name].partial else "", kinds[name].about]


def summary(rows):
    gains = [Gains(row) for row in rows if "rounds" in row]
    counted = [one for one in gains if one.counts]
    lines = []
    if gains:
        expert, plan = geometric_mean([one.expert_gain for one in gains]), geometric_mean([one.plan_gain for one in gains])
        lines += [f"Geometric mean of gains over the baseline, {len(gains)} variants: {expert:.2f} the expert's plan, {plan:.2f} the plan.", ""]
        reached = sum(one.reached for one in counted)
        part = f" ({100 * reached / len(counted):.0f} %)" if counted else ""
        lines += [f"The expert's plan gains at least {GAIN} in {len(counted)} variants. In {reached} of them{part} the plan takes at most "
                  f"{GAIN} times as long as the expert's plan plus {1e3 * SLACK_MS:.0f} us.", ""]
    verdicts = collections.Counter(row["verdict"] for row in rows if "verdict" in row)
    counts = ", ".join(f"{count} {verdict}" for verdict, count in sorted(verdicts.items()))
    lines += [f"Verdicts on the pairs: {counts or 'none'}.", ""]
    unproven = [f"- `{row['name']}`: {row['verdict']}{', ' + row['reason'] if row.get('reason') else ''}" for row in rows
                if row.get("verdict", PROVEN[0]) not in PROVEN]
    return lines + (["Not proven:", "", *unproven, ""] if unproven else [])


def report(command, version, machine, rows, kinds):
    """The text of the results file."""
    lines = ["# Chances: pairs in which an expert saves work", "", f"Command: `{command}`", "",
             f"Date: {datetime.date.today()}; {machine}", "", *(f"    {line}" for line in version), "",
             "The baseline is the naive form as it is. The plan is what the search makes of it. The expert plan is what it makes of the expert form.",
             "All three are measured in turns: the median over the rounds' medians, with the spread (largest less smallest round).",
             "Gains are over the baseline. The plan's share is its gain over the expert plan's.",
             "A verdict is that of `mendel verify` on the pair.", "", "## Summary", ""]
    return "\n".join(lines + summary(rows) + table(KIND_HEADER, kind_rows(rows, kinds)) + ["", "## Pairs", ""]
                     + table(HEADER, [cells(row) for row in rows])) + "\n"
