import { LaneList } from "@/canvas/LaneList";
import { useRun } from "@/stream/RunProvider";
import type { Folding } from "./folding";
import { LaneWords } from "./LaneWords";
import { RunStep } from "./RunStep";

type StepLanesProps = Folding & {
  selectedPath: string | null;
  onSelect: (path: string) => void;
};

/** The steps of a run, for screens that are too narrow for a canvas. */
export function StepLanes(props: StepLanesProps) {
  const waves = useRun((run) => run.waves);
  return (
    <LaneList
      lanes={waves.map(({ number, nodes }) => ({ wave: number, ids: nodes }))}
      header={({ wave }) => <LaneWords wave={wave} />}
      renderStep={(id) => <RunStep path={id} isTabStop {...props} />}
    />
  );
}
