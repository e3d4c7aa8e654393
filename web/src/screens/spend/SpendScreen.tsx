import { Link, useSearchParams } from "react-router";
import { useSpend } from "@/api/queries";
import type { Operations } from "@/api/types";
import { ErrorNote } from "@/screens/ErrorNote";
import { costWords } from "@/screens/runs/runWords";
import styles from "@/screens/spend/SpendScreen.module.css";
import { ButtonLink } from "@/ui/Button";
import { EmptyState } from "@/ui/EmptyState";
import { TextField } from "@/ui/Field";
import { formatAmount, formatCount, formatDay, formatUsd } from "@/ui/format";
import { Note } from "@/ui/Note";
import { usePageTitle } from "@/ui/pageTitle";
import { Segmented } from "@/ui/Segmented";
import { Skeleton } from "@/ui/Skeleton";
import { numericCell, Row, Table } from "@/ui/Table";

type Report = Operations["getSpend"]["answer"];
type Group = Report["groups"][number];

const BY = [
  { value: "day", label: "By day" },
  { value: "flow", label: "By flow" },
  { value: "model", label: "By model" },
] as const;
type By = (typeof BY)[number]["value"];

const FIRST_COLUMN: Record<By, string> = { day: "Day", flow: "Flow", model: "Model" };

/** What calls of models used by day, flow or model, the planning included. */
export function SpendScreen() {
  usePageTitle("Spend");
  const [params, setParams] = useSearchParams();
  const by = BY.find(({ value }) => value === params.get("by"))?.value ?? "day";
  const days = { since: params.get("since") || undefined, until: params.get("until") || undefined };
  const report = useSpend({ by, ...days });
  const change = (name: string, value: string) =>
    setParams(
      (now) => {
        const next = new URLSearchParams(now);
        if (value) next.set(name, value);
        else next.delete(name);
        return next;
      },
      { replace: true },
    );
  return (
    <div className={styles.page}>
      <header className={styles.header}>
        <h1>Spend</h1>
        <ButtonLink to="/runs">Runs</ButtonLink>
      </header>
      <search className={styles.filter} aria-label="Filter">
        <Segmented label="Group" value={by} options={BY} onChange={(next) => change("by", next)} />
        <span className={styles.days}>
          <TextField
            label="From"
            hiddenLabel
            type="date"
            value={days.since ?? report.data?.since ?? ""}
            onChange={(event) => change("since", event.target.value)}
          />
          <span>to</span>
          <TextField
            label="To"
            hiddenLabel
            type="date"
            value={days.until ?? report.data?.until ?? ""}
            onChange={(event) => change("until", event.target.value)}
          />
          <span>UTC</span>
        </span>
      </search>
      <div className={styles.body}>
        {report.error && <ErrorNote error={report.error} />}
        {report.isPending && <Skeleton label="Loading what was spent" lines={6} />}
        {report.data && <Sums report={report.data} />}
      </div>
    </div>
  );
}

function Sums({ report }: { report: Report }) {
  const { total, warning } = report;
  return (
    <>
      {warning && (
        <Note kind="warning">
          {formatUsd(warning.cost_usd)} spent today, which is more than the{" "}
          {formatUsd(warning.warn_usd)} you want to be warned of. Nothing is stopped.
        </Note>
      )}
      {total.calls === 0 ? (
        <EmptyState title="Nothing was spent.">
          No model was called in these days. A run counts once it has paused or ended.
        </EmptyState>
      ) : (
        <>
          <Total total={total} />
          <Groups report={report} />
        </>
      )}
    </>
  );
}

function Total({ total }: { total: Report["total"] }) {
  return (
    <dl className={styles.total} aria-label="In all">
      <div>
        <dt>Cost</dt>
        <dd>{costWords(total)}</dd>
      </div>
      <div>
        <dt>Of which planning</dt>
        <dd>{costWords({ cost_usd: total.planning_cost_usd })}</dd>
      </div>
      <div>
        <dt>Tokens</dt>
        <dd>{formatCount(total.input_tokens + total.output_tokens)}</dd>
      </div>
      <div>
        <dt>Calls</dt>
        <dd>{formatCount(total.calls)}</dd>
      </div>
      {total.unpriced_calls > 0 && (
        <p className={styles.unknown}>
          The cost of {formatAmount(total.unpriced_calls, "call")} is not known and not in the sum.
        </p>
      )}
    </dl>
  );
}

function Groups({ report: { by, groups } }: { report: Report }) {
  const most = Math.max(...groups.map(measureOf), 0);
  return (
    <div className={styles.groups}>
      <Table
        label={`Spend by ${by}`}
        columns={[
          { label: FIRST_COLUMN[by] },
          { label: "Share", width: "30%", hiddenLabel: true },
          { label: "Cost", width: "96px", numeric: true },
          { label: "Planning", width: "96px", numeric: true },
          { label: "Tokens", width: "104px", numeric: true },
          { label: "Calls", width: "72px", numeric: true },
        ]}
      >
        {groups.map((group) => (
          <Row key={group.key}>
            <td title={nameOf(by, group)}>
              <GroupName by={by} group={group} />
            </td>
            <td aria-hidden="true">
              <span
                className={styles.bar}
                style={{ width: `${most > 0 ? (100 * measureOf(group)) / most : 0}%` }}
              />
            </td>
            <td
              className={numericCell}
              title={
                group.unpriced_calls > 0
                  ? `without ${formatAmount(group.unpriced_calls, "call")} of unknown cost`
                  : undefined
              }
            >
              {costWords(group)}
            </td>
            <td className={numericCell}>{costWords({ cost_usd: group.planning_cost_usd })}</td>
            <td className={numericCell}>{formatCount(group.input_tokens + group.output_tokens)}</td>
            <td className={numericCell}>{formatCount(group.calls)}</td>
          </Row>
        ))}
      </Table>
    </div>
  );
}

function GroupName({ by, group }: { by: By; group: Group }) {
  if (by === "flow" && group.key)
    return <Link to={`/flows/${group.key}`}>{nameOf(by, group)}</Link>;
  if (by === "day") {
    const range = `time=range&from=${group.key}&to=${group.key}`;
    return <Link to={`/runs?${range}`}>{nameOf(by, group)}</Link>;
  }
  return nameOf(by, group);
}

function nameOf(by: By, { key, name }: Group): string {
  if (by === "flow" && !key) return "Without a flow";
  if (by === "day") return formatDay(key);
  return name ?? (key.replace(/^\//, "") || "unknown");
}

/** What the bars compare: cost, or tokens where no cost is known. */
function measureOf(group: Group): number {
  return Number(group.cost_usd ?? 0) || 0;
}
