import styles from "@/screens/compare/ChangeMark.module.css";
import type { Change } from "@/screens/compare/comparison";
import { Icon, type IconName } from "@/ui/icons";

export const CHANGE_WORDS: Record<Change, string> = {
  same: "same",
  changed: "changed",
  only_a: "only in A",
  only_b: "only in B",
};

const ICONS: Record<Change, IconName> = {
  same: "equal",
  changed: "unequal",
  only_a: "remove",
  only_b: "add",
};

/** What became of a step from A to B: icon, word and colour. */
export function ChangeMark({ change }: { change: Change }) {
  return (
    <span className={styles.mark} data-change={change}>
      <Icon name={ICONS[change]} small />
      {CHANGE_WORDS[change]}
    </span>
  );
}
