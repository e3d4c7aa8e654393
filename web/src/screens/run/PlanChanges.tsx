import { useState } from "react";
import type { PlanChange, RunState } from "@/stream/runState";
import { Button } from "@/ui/Button";
import { Dialog } from "@/ui/Dialog";
import { formatAmount, formatTime } from "@/ui/format";
import { principalWords } from "@/ui/principalWords";
import { Status } from "@/ui/Status";
import styles from "./PlanChanges.module.css";

/** How often the plan of a run was changed while it ran, and a list of these changes; nothing where it never was. */
export function PlanChanges({ run }: { run: RunState }) {
  const [isOpen, setOpen] = useState(false);
  const { changes } = run;
  if (changes.length === 0) return null;
  return (
    <>
      <Button small kind="quiet" icon="history" onClick={() => setOpen(true)}>
        Plan changed {formatAmount(changes.length, "time")}
      </Button>
      <Dialog
        open={isOpen}
        onClose={() => setOpen(false)}
        title="Changes of the plan"
        description="What was changed while the run went on, the newest first."
      >
        <ol className={styles.changes} aria-label="Changes of the plan" reversed>
          {changes.toReversed().map((change) => (
            <li key={change.number}>
              <Change change={change} run={run} />
            </li>
          ))}
        </ol>
      </Dialog>
    </>
  );
}

function Change({ change, run }: { change: PlanChange; run: RunState }) {
  const { number, at, note, revisedBy, graphChange, dropped } = change;
  const begun = new Set(dropped.map(({ id }) => id));
  const names = namesBefore(run, change);
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
            {dropped.map(({ id, name, status, error }) => (
              <dd key={id}>
                <Status status={status}>
                  {name}: {status}
                </Status>
                {error && <p>{error.message}</p>}
              </dd>
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

/** The names of the steps that earlier changes have brought. */
function namesBefore({ changes }: RunState, { number }: PlanChange): ReadonlyMap<string, string> {
  const earlier = changes.filter((each) => each.number < number);
  return new Map(
    earlier.flatMap(({ graphChange }) =>
      graphChange.nodes.map(({ id, name }) => [id, name || id] as const),
    ),
  );
}
