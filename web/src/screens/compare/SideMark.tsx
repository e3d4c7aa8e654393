import styles from "@/screens/compare/SideMark.module.css";
import { classes } from "@/ui/classes";

export type Side = "A" | "B";

export const SIDES: readonly Side[] = ["A", "B"];

/** The letter of one side of a comparison. */
export function SideMark({ side, small = false }: { side: Side; small?: boolean }) {
  return (
    <span className={classes(styles.mark, side === "B" && styles.open, small && styles.small)}>
      {side}
    </span>
  );
}
