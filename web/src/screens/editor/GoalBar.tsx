import type { ReactNode } from "react";
import { SelectableWords } from "@/inspector/SelectableWords";
import { Icon } from "@/ui/icons";
import styles from "./GoalBar.module.css";

type GoalBarProps = {
  goal: string;
  /** What can be done with words of it. */
  onWords: (words: string) => ReactNode;
};

/** What a plan is for: one line until it is opened. */
export function GoalBar({ goal, onWords }: GoalBarProps) {
  return (
    <details className={styles.goal}>
      <summary>
        <Icon name="right" small />
        <b>Goal</b>
        <span dir="auto">{goal}</span>
      </summary>
      <SelectableWords action={onWords}>
        <p className={styles.text} dir="auto">
          {goal}
        </p>
      </SelectableWords>
    </details>
  );
}
