import { lazy, Suspense, useRef, useState } from "react";
import { errorText } from "@/api/errorText";
import { CompareFacts } from "@/screens/compare/CompareFacts";
import { CompareGraph } from "@/screens/compare/CompareGraph";
import { CompareSteps } from "@/screens/compare/CompareSteps";
import styles from "@/screens/compare/Comparison.module.css";
import { firstChosen } from "@/screens/compare/comparison";
import { useComparison } from "@/screens/compare/useComparison";
import { classes } from "@/ui/classes";
import { Note } from "@/ui/Note";
import { Skeleton } from "@/ui/Skeleton";
import { useBreakpoint } from "@/ui/useMedia";

const OutputDiff = lazy(() =>
  import("@/screens/compare/OutputDiff").then((module) => ({ default: module.OutputDiff })),
);

interface ComparisonProps {
  a: string;
  b: string;
  /** Whether there is room for both graphs. */
  withGraph?: boolean;
}

/** What differs between two runs: facts, steps, and the words of the chosen step. */
export function Comparison({ a, b, withGraph = false }: ComparisonProps) {
  const { comparison, error } = useComparison(a, b);
  const [path, setPath] = useState<string | null>(null);
  const output = useRef<HTMLElement>(null);
  const isPhone = useBreakpoint("phone");
  const choose = (next: string) => {
    setPath(next);
    // On a phone it is far below.
    if (isPhone) requestAnimationFrame(() => output.current?.scrollIntoView({ block: "start" }));
  };
  if (error) {
    return (
      <div className={styles.wait}>
        <Note kind="error">{errorText(error)}</Note>
      </div>
    );
  }
  if (!comparison) {
    return (
      <div className={styles.wait}>
        <Skeleton label="Loading both runs" lines={5} />
      </div>
    );
  }
  const { runs, steps, nodes } = comparison;
  const chosen = nodes.find((step) => step.path === path) ?? firstChosen(steps);
  return (
    <div className={classes(styles.body, withGraph && styles.withGraph)}>
      {withGraph && (
        <CompareGraph runs={runs} nodes={nodes} chosen={chosen?.path ?? null} onChoose={choose} />
      )}
      <CompareFacts runs={runs} steps={steps} />
      <CompareSteps steps={steps} chosen={chosen?.path ?? null} onChoose={choose} />
      {chosen && (
        <Suspense fallback={<Skeleton label="Loading the words" lines={3} />}>
          <OutputDiff step={chosen} ref={output} />
        </Suspense>
      )}
    </div>
  );
}
