import { PlanCard } from "@/canvas/PlanUnion";
import type { PlanStep } from "@/canvas/planSteps";
import { useRun } from "@/stream/RunProvider";

type PendingStepProps = {
  step: PlanStep;
  selectedPath: string | null;
  isTabStop: boolean;
  /** With null where the run has no such step yet. */
  onSelect: (path: string | null) => void;
};

/** The card of a step that a change of the plan adds, changes or drops, before it is made. */
export function PendingStep({ step, selectedPath, isTabStop, onSelect }: PendingStepProps) {
  const { id } = step.node;
  const status = useRun((run) => run.nodes.get(id)?.status);
  return (
    <PlanCard
      {...{ step, status, isTabStop }}
      isGhost
      isSelected={selectedPath === id}
      onSelect={() => onSelect(status === undefined ? null : id)}
    />
  );
}
