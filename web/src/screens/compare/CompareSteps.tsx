import { SideHeads } from "@/screens/compare/CompareFacts";
import styles from "@/screens/compare/CompareSteps.module.css";
import {
  againstWords,
  type StepPair,
  secondsOfStep,
  timeWords,
} from "@/screens/compare/comparison";
import { classes } from "@/ui/classes";
import { STATUS_WORDS, StatusIcon } from "@/ui/Status";

interface CompareStepsProps {
  steps: readonly StepPair[];
  /** The path of the step whose output is compared. */
  chosen: string | null;
  onChoose: (path: string) => void;
}

/** The steps of two runs with their times; one is selected to compare its outputs. */
export function CompareSteps({ steps, chosen, onChoose }: CompareStepsProps) {
  const longest = Math.max(0.001, ...steps.flatMap((step) => secondsOfStep(step).map(Number)));
  return (
    <div className={styles.place}>
      <table className={styles.steps} aria-label="Steps">
        <thead>
          <tr>
            <th scope="col">Step</th>
            <td className={styles.bars} />
            <SideHeads />
            <th scope="col">B against A</th>
          </tr>
        </thead>
        <tbody>
          {steps.map((step) => (
            <StepRow
              key={step.path}
              step={step}
              longest={longest}
              isChosen={step.path === chosen}
              onChoose={() => onChoose(step.path)}
            />
          ))}
        </tbody>
      </table>
    </div>
  );
}

interface StepRowProps {
  step: StepPair;
  /** The longest time of any step, in seconds. */
  longest: number;
  isChosen: boolean;
  onChoose: () => void;
}

function StepRow({ step, longest, isChosen, onChoose }: StepRowProps) {
  const { words, trend } = againstWords(step);
  const seconds = secondsOfStep(step);
  return (
    <tr className={isChosen ? styles.chosen : undefined}>
      <th scope="row">
        <button
          type="button"
          className={styles.name}
          aria-pressed={isChosen}
          title={step.name}
          onClick={onChoose}
        >
          {step.name}
        </button>
      </th>
      <td className={styles.bars}>
        <div className={styles.twin} aria-hidden="true">
          <i style={{ width: `${(100 * (seconds[0] ?? 0)) / longest}%` }} />
          <i style={{ width: `${(100 * (seconds[1] ?? 0)) / longest}%` }} />
        </div>
      </td>
      <StepSide node={step.nodes[0]} />
      <StepSide node={step.nodes[1]} />
      <td className={classes(styles.against, styles[trend])}>
        {words}
        {step.change === "changed" && <span className="visually-hidden">, another output</span>}
      </td>
    </tr>
  );
}

/** How long the step took in one run, or why it did not come to its end. */
function StepSide({ node }: { node: StepPair["nodes"][number] }) {
  if (!node) return <td>–</td>;
  const isPlain = node.status === "completed";
  const time = timeWords(node);
  return (
    <td title={STATUS_WORDS[node.status]}>
      <span className={styles.side}>
        {!isPlain && <StatusIcon status={node.status} />}
        {!isPlain && (
          <span className={time ? "visually-hidden" : undefined}>{STATUS_WORDS[node.status]}</span>
        )}
        {time}
      </span>
    </td>
  );
}
