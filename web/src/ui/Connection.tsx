import styles from "@/ui/Connection.module.css";
import { classes } from "@/ui/classes";

interface ConnectionProps {
  state: "live" | "reconnecting" | "lost";
  /** What is shown meanwhile: "as of event 214". */
  asOf?: string;
}

const WORDS = { live: "Live", reconnecting: "Reconnecting", lost: "No connection" } as const;

/** Whether the page shows the current state of the service. */
export function Connection({ state, asOf }: ConnectionProps) {
  return (
    <span className={classes(styles.connection, state !== "live" && styles.lost)}>
      {WORDS[state]}
      {state !== "live" && asOf && `, ${asOf}`}
    </span>
  );
}
