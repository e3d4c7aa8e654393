import { useNavigate } from "react-router";
import styles from "@/screens/compare/CompareDock.module.css";
import { CompareHeader } from "@/screens/compare/CompareHeader";
import { Comparison } from "@/screens/compare/Comparison";
import { SideMark } from "@/screens/compare/SideMark";
import { comparePath, type Ticks } from "@/screens/compare/ticks";
import { Button, ButtonLink } from "@/ui/Button";
import { IconButton } from "@/ui/IconButton";
import { useShortcuts } from "@/ui/shortcuts";

interface CompareDockProps {
  ticks: Ticks;
  onChange: (ticks: Ticks) => void;
}

/** Below the list of runs: the ticked runs, and their differences if there are two. */
export function CompareDock({ ticks, onChange }: CompareDockProps) {
  const navigate = useNavigate();
  const [a, b] = ticks;
  const close = () => onChange([]);
  useShortcuts("Runs", a === undefined ? [] : [{ keys: "escape", does: "Untick all", run: close }]);
  if (a === undefined) return null;
  if (b === undefined) {
    return (
      <section className={styles.hint} aria-label="Compare">
        <SideMark side="A" />
        <p>
          <b>Tick two runs.</b> You see what differs: steps, time, tokens, cost, words.
        </p>
        <span className={styles.actions}>
          <ButtonLink small to={comparePath(ticks)}>
            Choose the other
          </ButtonLink>
          <IconButton icon="close" label="Close" keys="Esc" small onClick={close} />
        </span>
      </section>
    );
  }
  return (
    <section className={styles.dock} aria-label="Compare two runs">
      <CompareHeader ticks={ticks} title={<h2>Compare</h2>}>
        <Button small onClick={() => onChange([b, a])}>
          Swap
        </Button>
        <Button small onClick={() => navigate(comparePath(ticks))}>
          Open side by side
        </Button>
        <IconButton icon="close" label="Close" keys="Esc" small onClick={close} />
      </CompareHeader>
      <div className={styles.body}>
        <Comparison key={`${a} ${b}`} a={a} b={b} />
      </div>
    </section>
  );
}
