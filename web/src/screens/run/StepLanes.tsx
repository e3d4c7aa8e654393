import { LaneList } from "@/canvas/LaneList";
import { useRun } from "@/stream/RunProvider";
import type { Folding } from "./folding";
import { LaneWords } from "./LaneWords";
import { PendingStep } from "./PendingStep";
import { usePendingPlan } from "./pendingPlan";
import { RunStep } from "./RunStep";

type StepLanesProps = Folding & {
  selectedPath: string | null;
  onSelect: (path: string | null) => void;
};

/** The steps of a run, for screens that are too narrow for a canvas. */
export function StepLanes(props: StepLanesProps) {
  const waves = useRun((run) => run.waves);
  const pending = usePendingPlan();
  const lanes = pending
    ? pending.waves.map((ids, index) => ({ wave: index + 1, ids }))
    : waves.map(({ number, nodes }) => ({ wave: number, ids: nodes }));
  return (
    <LaneList
      lanes={lanes}
      header={({ wave }) => <LaneWords {...{ wave, pending }} />}
      renderStep={(id) => {
        const step = pending?.steps.get(id);
        return step ? (
          <PendingStep {...{ step, ...props }} isTabStop />
        ) : (
          <RunStep path={id} isTabStop {...props} />
        );
      }}
    />
  );
}
