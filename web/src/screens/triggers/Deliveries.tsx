import { Link } from "react-router";
import type { DeliveryResponse } from "@/api/types";
import { formatInstant } from "@/ui/format";
import styles from "./TriggersScreen.module.css";

/** The last deliveries of a trigger, newest first, with the runs that they started. */
export function Deliveries(props: { of: string; deliveries: readonly DeliveryResponse[] }) {
  if (props.deliveries.length === 0) return <p className={styles.fact}>Nothing came yet.</p>;
  return (
    <ul className={styles.rows} aria-label={`Deliveries of ${props.of}`}>
      {props.deliveries.map((each) => (
        <li key={each.key}>
          <time dateTime={each.received_at}>{formatInstant(new Date(each.received_at))}</time>
          <span>{each.outcome ?? "under way"}</span>
          {each.execution_id && <Link to={`/runs/${each.execution_id}`}>Show the run</Link>}
          <span className={styles.note}>{each.note}</span>
        </li>
      ))}
    </ul>
  );
}
