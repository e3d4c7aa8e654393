import { useState } from "react";
import { tokensOf } from "@/api/executionSummary";
import type { NodeState, PlanChange, PlanRefusal, RunState } from "@/stream/runState";
import { Button } from "@/ui/Button";
import { Dialog } from "@/ui/Dialog";
import { formatAmount, formatTime, formatUsd } from "@/ui/format";
import { principalWords } from "@/ui/principalWords";
import { Status } from "@/ui/Status";
import styles from "./PlanChanges.module.css";

type Changed = Pick<RunState, "changes" | "refusals">;

/** How often the plan of a run was changed while it ran, or was to be, and a list of that; nothing where it never was. */
export function PlanChanges({ run }: { run: Changed }) {
  const [isOpen, setOpen] = useState(false);
  const count = run.changes.length;
  if (count + run.refusals.length === 0) return null;
  return (
    <>
      <Button small kind="quiet" icon="history" onClick={() => setOpen(true)}>
        {count > 0 ? `Plan changed ${formatAmount(count, "time")}` : "Plan not changed"}
      </Button>
      <ChangesDialog run={run} open={isOpen} onClose={() => setOpen(false)} />
    </>
  );
}

type ChangesDialogProps = { run: Changed; open: boolean; onClose: () => void };

/** What each change of the plan has made, what was paid for steps that it dropped, and why others were not made. */
export function ChangesDialog({ run, open, onClose }: ChangesDialogProps) {
  const items = [
    ...run.changes.map((change) => ({ at: change.at, item: <Change change={change} /> })),
    ...run.refusals.map((refusal) => ({ at: refusal.at, item: <Refusal refusal={refusal} /> })),
  ];
  items.sort((a, b) => Date.parse(b.at) - Date.parse(a.at));
  return (
    <Dialog
      open={open}
      onClose={onClose}
      title="Changes of the plan"
      description="What was changed while the run went on, the newest first."
    >
      <ol className={styles.changes} aria-label="Changes of the plan" reversed>
        {items.map(({ at, item }) => (
          <li key={at}>{item}</li>
        ))}
      </ol>
    </Dialog>
  );
}

function Refusal({ refusal: { at, error } }: { refusal: PlanRefusal }) {
  return (
    <>
      <h3>Not changed, {formatTime(new Date(at), true)}</h3>
      <p dir="auto">{error?.message}</p>
      {error?.hint && <p dir="auto">{error.hint}</p>}
    </>
  );
}

function Change({ change }: { change: PlanChange }) {
  const { number, at, note, revisedBy, graphChange, before, dropped } = change;
  const begun = new Set(dropped.map(({ id }) => id));
  const names = new Map(before?.nodes.map(({ id, name }) => [id, name || id]));
  const others = graphChange.dropped_nodes.filter((id) => !begun.has(id));
  const who = revisedBy && principalWords(revisedBy);
  return (
    <>
      <h3>
        Change {number}, {formatTime(new Date(at), true)}
        {who && `, by ${who}`}
      </h3>
      {note && <p dir="auto">{note}</p>}
      <dl>
        {graphChange.nodes.length > 0 && (
          <>
            <dt>New or changed</dt>
            <dd>{graphChange.nodes.map(({ id, name }) => name || id).join(", ")}</dd>
          </>
        )}
        {others.length > 0 && (
          <>
            <dt>Taken out</dt>
            <dd>{others.map((id) => names.get(id) ?? id).join(", ")}</dd>
          </>
        )}
        {dropped.length > 0 && (
          <>
            <dt>Taken out after they had begun</dt>
            {dropped.map((node) => (
              <DroppedStep key={node.id} node={node} />
            ))}
          </>
        )}
        {graphChange.nodes.length + graphChange.dropped_nodes.length === 0 && (
          <>
            <dt>Steps</dt>
            <dd>The same, connected otherwise</dd>
          </>
        )}
      </dl>
    </>
  );
}

/** Characters of a result that are shown. */
const SHOWN = 400;

/** A step that a change dropped after it had begun: what it gave and took, which the run has paid. */
function DroppedStep({ node }: { node: NodeState }) {
  const { name, status, error, result, usage } = node;
  const words = error?.message ?? result?.text.slice(0, SHOWN);
  const paid = usage.cost_usd !== null && `, ${formatUsd(usage.cost_usd)}`;
  return (
    <dd>
      <Status status={status}>
        {name}: {status}
      </Status>
      {usage.calls > 0 && (
        <p>
          {formatAmount(tokensOf(usage), "token")}
          {paid}, counted in the total
        </p>
      )}
      {words && <p dir="auto">{words}</p>}
    </dd>
  );
}
