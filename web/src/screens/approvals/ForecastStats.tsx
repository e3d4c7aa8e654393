import type { ForecastResponse } from "@/api/types";
import { forecastStats } from "@/screens/goal/planView";
import { formatCount } from "@/ui/format";
import styles from "./RequestDetail.module.css";

/** What the steps will take that a person is asked about. */
export function ForecastStats({ forecast }: { forecast: ForecastResponse }) {
  return (
    <dl className={styles.stats}>
      <div>
        <dt>Steps</dt>
        <dd>{formatCount(forecast.nodes)}</dd>
      </div>
      {forecastStats(forecast, false).map(({ label, value }) => (
        <div key={label}>
          <dt>{label}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}
