import { classes } from "@/ui/classes";
import styles from "@/ui/KeyHint.module.css";

/** The keys for the control beside them; hidden from screen readers, the help lists them. */
export function KeyHint({ keys, onInk = false }: { keys: string; onInk?: boolean }) {
  return (
    <span className={classes(styles.keys, onInk && styles.inherit)} aria-hidden="true">
      {keys}
    </span>
  );
}
