import type { DiagnosticResponse, Issue } from "@/api/types";
import styles from "@/screens/goal/GoalScreen.module.css";
import { Note } from "@/ui/Note";

interface PlanProblemsProps {
  /** Of a plan that is stored, or of a request that is refused. */
  findings: readonly (DiagnosticResponse | Issue)[];
  /** The names of the steps, by id. */
  names: ReadonlyMap<string, string>;
  /** What was changed in the reply of the model. */
  fixes?: readonly string[];
  /** Said before the findings. */
  lead?: string;
}

const KINDS = { error: "error", warning: "warning", info: "plain" } as const;

function kindOf(severity: string | null | undefined) {
  return KINDS[(severity ?? "error") as keyof typeof KINDS] ?? "plain";
}

/** What is wrong or worth knowing about a plan, with the steps it is about. */
export function PlanProblems({ findings, names, fixes = [], lead }: PlanProblemsProps) {
  if (findings.length + fixes.length === 0) return null;
  return (
    <div className={styles.notes}>
      {lead && <p className={styles.lead}>{lead}</p>}
      {findings.map((finding) => (
        <Note key={`${finding.code} ${finding.pointer}`} kind={kindOf(finding.severity)}>
          {finding.node && (
            <b className={styles.step}>{names.get(finding.node) ?? finding.node}: </b>
          )}
          {finding.message}
          {finding.hint && ` (${finding.hint})`}
        </Note>
      ))}
      {fixes.length > 0 && (
        <Note>
          {fixes.length === 1 ? "1 fix" : `${fixes.length} fixes`} made while reading the reply:{" "}
          {fixes.join("; ")}.
        </Note>
      )}
    </div>
  );
}
