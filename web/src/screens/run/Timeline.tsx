import { type CSSProperties, useMemo } from "react";
import { classes } from "@/ui/classes";
import { formatDuration } from "@/ui/format";
import { Icon } from "@/ui/icons";
import { StatusIcon, type StatusName } from "@/ui/Status";
import { useVirtualRows } from "@/ui/useVirtualRows";
import styles from "./Timeline.module.css";
import { createTimeScale, type Span, type TimeScale } from "./timeScale";

/** A piece of a step's time: waiting for a slot, one attempt's work, waiting for a person, to come. */
export type Bar = Span & {
  kind: "queue" | "work" | "wait" | "forecast";
  status: StatusName;
  /** It still grows. */
  isOpen?: boolean;
};

export type TimelineRow = {
  path: string;
  /** The step that it opens, where the row is no step itself. */
  opens?: string;
  name: string;
  status: StatusName;
  /** Nesting, 0 for steps of the plan itself. */
  depth: number;
  /** Undefined where nothing is nested below the step. */
  isFolded?: boolean;
  bars: Bar[];
  /** What stands behind the last bar: "6.5 s", "2 attempts, 7.6 s". */
  label: string;
  /** On the longest path through the run. */
  isCritical: boolean;
};

/** When the plan was changed, or was to be and was not. */
export type ChangeMark = {
  /** From 1; null of a change that was refused. */
  number: number | null;
  /** Seconds since the start of the run. */
  at: number;
  /** When, by whom and why; of one that was refused, why not. */
  title: string;
};

/** Of a row, in px; the style sheet has the same. */
const ROW_HEIGHT = 24;

type TimelineProps = {
  rows: readonly TimelineRow[];
  /** Seconds since the start while it runs, null when it has ended. */
  now: number | null;
  squeeze: boolean;
  changes?: readonly ChangeMark[];
  /** The change that is shown, if one is. */
  moment?: number | null;
  /** Shows the plan with a change; null as it is now. */
  onMoment?: (moment: number | null) => void;
  /** Shows the changes in words, those that were refused too. */
  onRefusal?: () => void;
  selectedPath: string | null;
  onSelect: (path: string) => void;
  onFold: (path: string, isOpen: boolean) => void;
};

/** What ran when: a row per step, queue and work apart, one bar per attempt. */
export function Timeline(props: TimelineProps) {
  const { rows, now, squeeze, changes = [], moment = null, ...others } = props;
  const { onMoment, onRefusal, ...choice } = others;
  const scale = useMemo(() => {
    const bars = rows.flatMap((row) => row.bars);
    const ahead = now === null ? [] : [untilForecast(bars, now)];
    const busy = bars.filter(({ kind }) => kind === "work" || kind === "forecast");
    const marks = changes.map(({ at }) => ({ from: at, to: at }));
    return createTimeScale([...bars, ...ahead, ...marks], squeeze, [...busy, ...ahead]);
  }, [rows, now, squeeze, changes]);
  const drawn = useVirtualRows<HTMLOListElement>(rows.length, ROW_HEIGHT);
  return (
    <div className={styles.timeline} style={{ "--longest": longestName(rows) } as CSSProperties}>
      <Axis scale={scale} />
      <div className={styles.body}>
        <Overlay scale={scale} now={now} changes={changes} />
        {changes.length > 0 && <Changes {...{ changes, scale, moment, onMoment, onRefusal }} />}
        <ol
          ref={drawn.list}
          className={styles.rows}
          aria-label="Steps by time"
          style={{ paddingBottom: drawn.rest }}
        >
          {drawn.rows.map(({ index, gap }) => {
            const row = rows[index];
            return (
              row && (
                <li
                  key={row.path}
                  aria-setsize={rows.length}
                  aria-posinset={index + 1}
                  data-row={index}
                  className={classes(
                    styles.row,
                    row.path === choice.selectedPath && styles.selected,
                  )}
                  style={{ marginTop: gap }}
                >
                  <Row row={row} scale={scale} {...choice} />
                </li>
              )
            );
          })}
        </ol>
      </div>
    </div>
  );
}

/** The length of the longest name, in characters; nested ones stand further right. */
function longestName(rows: readonly TimelineRow[]): number {
  return rows.reduce((most, { name, depth }) => Math.max(most, name.length + 2 * depth), 0);
}

/** From now until the last step that is expected begins: something runs then, so it is not idle. */
function untilForecast(bars: readonly Bar[], now: number): Span {
  const begins = bars.filter((bar) => bar.kind === "forecast").map((bar) => bar.from);
  return { from: now, to: Math.max(now, ...begins) };
}

function Axis({ scale }: { scale: TimeScale }) {
  return (
    <div className={styles.axis} aria-hidden="true">
      <div className={styles.plot}>
        {scale.ticks.map((tick) => (
          <span key={tick.at} style={{ left: percent(tick.position) }}>
            {tick.at === 0 ? "0 s" : formatTick(tick.at)}
          </span>
        ))}
        {scale.squeezed.map((gap) => (
          <i
            key={gap.from}
            className={styles.gap}
            style={extent(scale, gap)}
            title={`Nothing ran for ${formatDuration(gap.to - gap.from)}`}
          />
        ))}
      </div>
    </div>
  );
}

type ChangesProps = Required<Pick<TimelineProps, "changes" | "moment">> &
  Pick<TimelineProps, "onMoment" | "onRefusal"> & { scale: TimeScale };

/** A mark for each change of the plan, at its time; where two are close, the later one stands beside the other. */
function Changes({ changes, scale, moment, onMoment, onRefusal }: ChangesProps) {
  const isChanged = changes.some(({ number }) => number !== null);
  let left = "";
  const placed = changes.map((change) => {
    const place = percent(scale.position(change.at));
    left = left ? `max(${place}, ${left} + 26px)` : place;
    return { ...change, left: `calc(${left})` };
  });
  return (
    // biome-ignore lint/a11y/useSemanticElements: a fieldset would be announced as a form
    <div className={styles.row} role="group" aria-label="Changes of the plan">
      <span className={styles.name}>
        <Icon name="history" small />
        {isChanged ? "Plan changed" : "Plan not changed"}
      </span>
      <span className={styles.plot}>
        {placed.map(({ number, title, left }, index) => (
          <button
            // biome-ignore lint/suspicious/noArrayIndexKey: marks are only ever added, in the order of time
            key={index}
            type="button"
            className={classes(styles.change, number === null && styles.refused)}
            style={{ left }}
            title={title}
            aria-label={title}
            aria-pressed={number === null ? undefined : number === moment}
            onClick={() =>
              number === null ? onRefusal?.() : onMoment?.(number === moment ? null : number)
            }
          >
            {number ?? "×"}
          </button>
        ))}
      </span>
    </div>
  );
}

type OverlayProps = { scale: TimeScale; now: number | null; changes: readonly ChangeMark[] };

function Overlay({ scale, now, changes }: OverlayProps) {
  return (
    <div className={styles.overlay} aria-hidden="true">
      {scale.ticks.slice(1).map((tick) => (
        <i key={tick.at} className={styles.gridline} style={{ left: percent(tick.position) }} />
      ))}
      {scale.squeezed.map((gap) => (
        <i key={gap.from} className={styles.squeezed} style={extent(scale, gap)} />
      ))}
      {changes.map(({ at }, number) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: marks are only added, and two may say the same
        <i key={number} className={styles.changed} style={{ left: percent(scale.position(at)) }} />
      ))}
      {now !== null && <i className={styles.now} style={{ left: percent(scale.position(now)) }} />}
    </div>
  );
}

type RowProps = Pick<TimelineProps, "selectedPath" | "onSelect" | "onFold"> & {
  row: TimelineRow;
  scale: TimeScale;
};

function Row({ row, scale, selectedPath, onSelect, onFold }: RowProps) {
  const last = Math.max(0, ...row.bars.map((bar) => bar.to));
  return (
    <>
      <span className={styles.name} style={{ paddingLeft: row.depth * 14 }}>
        {row.isFolded !== undefined && (
          <button
            type="button"
            className={styles.fold}
            aria-expanded={!row.isFolded}
            aria-label={`Steps of ${row.name}`}
            onClick={() => onFold(row.path, row.isFolded === true)}
          />
        )}
        <StatusIcon status={row.status} />
        <button
          type="button"
          className={styles.choose}
          aria-pressed={row.path === selectedPath}
          aria-label={`${row.name}, ${row.status.replace("_", " ")}, ${row.label}`}
          title={row.name}
          onClick={() => onSelect(row.opens ?? row.path)}
        >
          {row.name}
        </button>
      </span>
      <span className={styles.plot} aria-hidden="true">
        {row.bars.map((bar) => (
          <i
            key={`${bar.kind}${bar.from}`}
            className={classes(styles.bar, styles[bar.kind], bar.isOpen && styles.open)}
            data-status={bar.status}
            data-critical={row.isCritical && bar.kind === "work"}
            style={extent(scale, bar)}
            title={bar.kind === "forecast" ? "As long as in the last run of this plan" : undefined}
          />
        ))}
        <span className={styles.label} style={{ left: percent(scale.position(last)) }}>
          {row.label}
        </span>
      </span>
    </>
  );
}

function extent(scale: TimeScale, { from, to }: Span) {
  const left = scale.position(from);
  return { left: percent(left), width: percent(scale.position(to) - left) };
}

function percent(share: number): string {
  return `${(share * 100).toFixed(2)}%`;
}

function formatTick(seconds: number): string {
  return seconds < 60 ? `${Number(seconds.toFixed(1))} s` : formatDuration(seconds);
}
