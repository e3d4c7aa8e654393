import { Fragment, type Ref, useMemo } from "react";
import { outputOf, type StepPair } from "@/screens/compare/comparison";
import styles from "@/screens/compare/OutputDiff.module.css";
import { type DiffPart, diffWords, sharedPart } from "@/screens/compare/wordDiff";
import { formatShare } from "@/ui/format";

const MARKS = { same: "span", removed: "del", added: "ins" } as const;

/** What a step gave in two runs, word by word. */
export function OutputDiff({ step, ref }: { step: StepPair; ref: Ref<HTMLElement> }) {
  const [a, b] = [outputOf(step.nodes[0]), outputOf(step.nodes[1])];
  const parts = useMemo(() => diffWords(a, b), [a, b]);
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: keyboards must be able to scroll it
    <section aria-label={`${step.name}, output`} tabIndex={0} ref={ref}>
      <header className={styles.head}>
        <h3>{step.name}, output</h3>
        {parts.length > 0 && (
          <span className={styles.share}>{formatShare(sharedPart(parts))} the same</span>
        )}
      </header>
      {step.differs.some((part) => part !== "output") && (
        <p className={styles.differs}>Differs in {step.differs.join(", ")}.</p>
      )}
      {parts.length === 0 ? (
        <p className={styles.none}>Neither run has an output here.</p>
      ) : (
        <p className={styles.text}>{parts.map(partElement)}</p>
      )}
    </section>
  );
}

/** The white space at the end of a change is outside of its mark. */
function partElement({ kind, text }: DiffPart, index: number) {
  const words = text.trimEnd();
  const Mark = MARKS[kind];
  return (
    <Fragment key={`${index} ${kind}`}>
      <Mark>{words}</Mark>
      {text.slice(words.length) || (kind === "same" ? "" : " ")}
    </Fragment>
  );
}
