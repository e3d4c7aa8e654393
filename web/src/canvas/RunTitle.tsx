import { inputsOf, titleOf } from "@/api/executionSummary";
import styles from "./RunTitle.module.css";

type Inputs = Parameters<typeof inputsOf>[0];

/** What a run is called in a list, and the inputs that tell it from others of its flow. */
export function RunTitle({ run }: { run: Parameters<typeof titleOf>[0] & Inputs }) {
  const title = titleOf(run);
  return (
    <span className={styles.title} title={[title, inputsOf(run)].filter(Boolean).join("\n")}>
      <span>{title}</span>
      <RunInputs run={run} />
    </span>
  );
}

/** The inputs of a run on one line, where its name leaves room. */
export function RunInputs({ run }: { run: Inputs }) {
  const inputs = inputsOf(run);
  return inputs ? (
    <span className={styles.inputs} title={inputs} dir="auto">
      {inputs}
    </span>
  ) : null;
}
