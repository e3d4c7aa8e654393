import { useId } from "react";
import type { RunState } from "@/stream/runState";
import styles from "./PlanMoments.module.css";
import { momentWords, type PlanMoment } from "./planMoments";

type PlanMomentsProps = {
  run: RunState;
  moment: PlanMoment;
  onMoment: (moment: PlanMoment) => void;
};

/** Chooses which plan of a run is shown: as it was made, with each of its changes, or as it is now. */
export function PlanMoments({ run, moment, onMoment }: PlanMomentsProps) {
  const id = useId();
  const now = run.changes.length + 1;
  const words = momentWords(run, moment);
  const note = moment === null ? "" : run.changes[moment - 1]?.note;
  return (
    <div className={styles.bar}>
      <label htmlFor={id}>Plan</label>
      <input
        id={id}
        type="range"
        min={0}
        max={now}
        step={1}
        value={moment ?? now}
        aria-valuetext={note ? `${words}, ${note}` : words}
        onChange={({ target }) => {
          const chosen = Number(target.value);
          onMoment(chosen === now ? null : chosen);
        }}
      />
      <span aria-hidden="true">{words}</span>
      {note && (
        <span className={styles.note} dir="auto" title={note} aria-hidden="true">
          {note}
        </span>
      )}
    </div>
  );
}
