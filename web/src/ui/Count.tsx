import styles from "@/ui/Count.module.css";
import { classes } from "@/ui/classes";

interface CountProps {
  value: number;
  /** What is counted, for screen readers: "3 waiting for you". */
  label?: string;
  /** Grey, for a number that asks for nothing. */
  plain?: boolean;
}

/** A number in a badge; past 99 it says so. */
export function Count({ value, label, plain = false }: CountProps) {
  return (
    <span className={classes(styles.count, plain && styles.plain)}>
      <span aria-hidden={label ? true : undefined}>{value > 99 ? "99+" : value}</span>
      {label && <span className="visually-hidden">{label}</span>}
    </span>
  );
}
