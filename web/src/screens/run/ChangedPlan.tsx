import { useCallback, useState } from "react";
import { PlanUnion } from "@/canvas/PlanUnion";
import type { RunState } from "@/stream/runState";
import { outerStep } from "./forkObstacle";
import { ChangesDialog } from "./PlanChanges";
import { graphsAt, momentWords, type PlanMoment, statusAt } from "./planMoments";

type ChangedPlanProps = {
  run: RunState;
  moment: PlanMoment;
  selectedPath: string | null;
  onSelect: (path: string) => void;
};

/** The plan of a run with one of its changes; a step that a change dropped leads to what is kept of it. */
export function ChangedPlan({ run, moment, selectedPath, onSelect }: ChangedPlanProps) {
  const [isOpen, setOpen] = useState(false);
  const { nodes, changes } = run;
  const statusOf = useCallback((id: string) => statusAt({ nodes, changes }, id), [nodes, changes]);
  const graphs = moment === null ? null : graphsAt(run, moment);
  if (graphs === null) return null;
  return (
    <>
      <PlanUnion
        key={moment}
        label={`The plan, ${momentWords(run, moment)}`}
        {...graphs}
        statusOf={statusOf}
        chosen={selectedPath && outerStep(selectedPath)}
        onChoose={(id) => (nodes.has(id) ? onSelect(id) : setOpen(true))}
      />
      <ChangesDialog run={run} open={isOpen} onClose={() => setOpen(false)} />
    </>
  );
}
