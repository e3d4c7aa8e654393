import { useSearchParams } from "react-router";
import { CompareHeader } from "@/screens/compare/CompareHeader";
import styles from "@/screens/compare/CompareScreen.module.css";
import { Comparison } from "@/screens/compare/Comparison";
import { PickRun } from "@/screens/compare/PickRun";
import { olderFirst, readTicks, type Ticks, withTicks } from "@/screens/compare/ticks";
import { Button, ButtonLink } from "@/ui/Button";
import { EmptyState } from "@/ui/EmptyState";
import { usePageTitle } from "@/ui/pageTitle";

/** Two runs beside each other, as a page of its own. */
export function CompareScreen() {
  usePageTitle("Compare runs");
  const [params, setParams] = useSearchParams();
  const ticks = readTicks(params);
  const [a, b] = ticks;
  const change = (next: Ticks) => setParams((now) => withTicks(now, next), { replace: true });
  if (a === undefined) return <NothingTicked />;
  if (b === undefined) {
    const compare = (picked: string) => setParams((now) => withTicks(now, olderFirst([a, picked])));
    return <PickRun a={a} onPick={compare} />;
  }
  return (
    <div className={styles.page}>
      <CompareHeader ticks={ticks} title={<h1>Compare</h1>}>
        <Button small onClick={() => change([b, a])}>
          Swap
        </Button>
        <Button small onClick={() => setParams((now) => withTicks(now, [a]))}>
          Choose another B
        </Button>
        <ButtonLink small to={`/runs?${withTicks(new URLSearchParams(), ticks)}`}>
          Back to the runs
        </ButtonLink>
      </CompareHeader>
      <Comparison key={`${a} ${b}`} a={a} b={b} withGraph />
    </div>
  );
}

function NothingTicked() {
  return (
    <>
      <h1 className="visually-hidden">Compare</h1>
      <EmptyState title="Tick two runs." action={<ButtonLink to="/runs">Show the runs</ButtonLink>}>
        You see what differs: steps, time, tokens, cost, words.
      </EmptyState>
    </>
  );
}
