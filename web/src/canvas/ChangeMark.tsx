import type { NodeDifference } from "@/api/types";
import { Icon, type IconName } from "@/ui/icons";
import styles from "./ChangeMark.module.css";

/** Whether two graphs have a step, and it is the same in both. */
export type Change = NodeDifference["change"];

const ICONS: Record<Change, IconName> = {
  same: "equal",
  changed: "unequal",
  only_a: "remove",
  only_b: "add",
};

/** What became of a step from A to B: icon, word and colour. */
export function ChangeMark({ change, word }: { change: Change; word: string }) {
  return (
    <span className={styles.mark} data-change={change}>
      <Icon name={ICONS[change]} small />
      {word}
    </span>
  );
}
