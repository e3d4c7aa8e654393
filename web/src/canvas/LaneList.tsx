import { Fragment, type ReactNode } from "react";
import styles from "./LaneList.module.css";

export type ListedLane = { wave: number; ids: readonly string[] };

type LaneListProps = {
  lanes: readonly ListedLane[];
  /** What stands beside "Wave n". */
  header: (lane: ListedLane) => ReactNode;
  renderStep: (id: string) => ReactNode;
};

/** The steps of a graph, wave below wave, for screens that are too narrow for a canvas. */
export function LaneList({ lanes, header, renderStep }: LaneListProps) {
  return (
    <div className={styles.lanes}>
      {lanes.map((lane) => (
        <section key={lane.wave} aria-label={`Wave ${lane.wave}`}>
          <header>
            <h2>Wave {lane.wave}</h2>
            {header(lane)}
          </header>
          {lane.ids.map((id) => (
            <Fragment key={id}>{renderStep(id)}</Fragment>
          ))}
        </section>
      ))}
    </div>
  );
}
