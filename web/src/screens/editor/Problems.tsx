import { memo, useState } from "react";
import type { CheckResponse, DiagnosticResponse, GraphDocument } from "@/api/types";
import { Button } from "@/ui/Button";
import { formatAmount } from "@/ui/format";
import { Icon } from "@/ui/icons";
import { Status } from "@/ui/Status";
import { forecastWords } from "./forecastWords";
import styles from "./Problems.module.css";
import { problemWords } from "./problemWords";
import { type OnCorrect, SuggestionButton } from "./SuggestionButton";

type ProblemsProps = {
  graph: GraphDocument;
  check: CheckResponse | undefined;
  onSelect: (ids: string[]) => void;
  onCorrect: OnCorrect;
};

/** Everything that the check found, each with its step, and what the plan will take. */
export const Problems = memo(function Problems(props: ProblemsProps) {
  const { check } = props;
  const [isOpen, setOpen] = useState(true);
  const found = (check?.diagnostics ?? []).filter((each) => each.severity !== "info");
  const errors = found.filter((each) => each.severity === "error").length;
  const warnings = found.length - errors;
  return (
    <section className={styles.problems} aria-label="Problems">
      <header>
        <h2>Problems</h2>
        {errors > 0 && <Status status="failed">{formatAmount(errors, "error")}</Status>}
        {warnings > 0 && <Status status="waiting">{formatAmount(warnings, "warning")}</Status>}
        {found.length === 0 && <Status status="completed">None</Status>}
        {found.length > 0 && (
          <Button small kind="quiet" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
            {isOpen ? "Hide" : "Show"}
          </Button>
        )}
        <span className={styles.space} />
        <span className={styles.forecast}>
          {forecastWords(check?.forecast).map((words) => (
            <span key={words}>{words}</span>
          ))}
        </span>
      </header>
      {isOpen && found.length > 0 && (
        <ul>
          {found.map((each) => (
            <Problem
              key={`${each.code} ${each.pointer}`}
              found={each}
              graph={props.graph}
              onSelect={props.onSelect}
              onCorrect={props.onCorrect}
            />
          ))}
        </ul>
      )}
    </section>
  );
});

type ProblemProps = Pick<ProblemsProps, "graph" | "onSelect" | "onCorrect"> & {
  found: DiagnosticResponse;
};

function Problem({ found, graph, onSelect, onCorrect }: ProblemProps) {
  const id = found.node ?? graph.edges.find((edge) => edge.id === found.edge)?.target;
  const node = graph.nodes.find((each) => each.id === id);
  return (
    <li data-severity={found.severity}>
      <Icon name={found.severity === "error" ? "error" : "warning"} />
      <b title={node?.name ?? undefined}>{node ? node.name || node.id : "The plan"}</b>
      <span title={problemWords(found, graph)}>{problemWords(found, graph)}</span>
      <div className={styles.buttons}>
        <SuggestionButton suggestion={found.suggestion} onCorrect={onCorrect} />
        {node && (
          <Button small kind="quiet" onClick={() => onSelect([node.id])}>
            Show
          </Button>
        )}
      </div>
    </li>
  );
}
