import { useRunOverview } from "@/stream/RunProvider";
import { useNow } from "@/ui/useNow";
import { summariseWave } from "./runSummary";

/** What a wave of the run does and how long it took, at the top of its lane. */
export function LaneWords({ wave }: { wave: number }) {
  const run = useRunOverview();
  const now = useNow(run.endedAt === null);
  const found = run.waves.find((each) => each.number === wave);
  if (!found) return null;
  const { words, time } = summariseWave(found, run, now);
  return (
    <>
      <span>{words}</span>
      <span>{time}</span>
    </>
  );
}
