import { planChangeWords } from "@/canvas/planSteps";
import { useRunOverview } from "@/stream/RunProvider";
import { useNow } from "@/ui/useNow";
import type { PendingPlan } from "./pendingPlan";
import { summariseWave } from "./runSummary";

type LaneWordsProps = {
  wave: number;
  /** The change of the plan that is not made yet. */
  pending: PendingPlan | null;
};

/** What a wave of the run does and how long it took, at the top of its lane; in place of it what a change makes of it. */
export function LaneWords({ wave, pending }: LaneWordsProps) {
  const run = useRunOverview();
  const now = useNow(run.endedAt === null);
  const found = run.waves.find((each) => each.number === wave);
  const { words, time } = found ? summariseWave(found, run, now) : { words: "", time: "" };
  const steps = pending?.waves[wave - 1]?.flatMap((id) => pending.steps.get(id) ?? []);
  return (
    <>
      <span>{planChangeWords(steps ?? []) || words}</span>
      <span>{time}</span>
    </>
  );
}
