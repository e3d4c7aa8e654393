import type { ReactNode } from "react";
import { classes } from "@/ui/classes";
import styles from "@/ui/Status.module.css";

/** What a step or a run can be; each has an icon, a word and a colour. */
export type StatusName = keyof typeof STATUS_WORDS;

export const STATUS_WORDS = {
  pending: "Pending",
  running: "Running",
  retrying: "Retrying",
  waiting: "Waiting",
  completed: "Completed",
  failed: "Failed",
  skipped: "Skipped",
  blocked: "Blocked",
  cancelled: "Cancelled",
  linked: "Linked",
  not_reached: "Not reached",
  draft: "Draft",
  starting: "Starting",
  executing: "Running",
  paused: "Paused",
  interrupted: "Interrupted",
  partial: "Failed in part",
} as const;

const PENDING = <circle cx="8" cy="8" r="5.7" strokeDasharray="2.4 2.08" />;
const RUNNING = (
  <>
    <circle cx="8" cy="8" r="5.7" opacity=".28" />
    <path d="M8 2.300A5.700 5.700 0 0113.700 8" />
  </>
);

function disc(sign: string) {
  return (
    <>
      <circle className={styles.fill} cx="8" cy="8" r="6.5" />
      <path className={styles.knock} d={sign} />
    </>
  );
}

const PAUSE = disc("M6.300 5.700v4.600M9.700 5.700v4.600");

const SHAPES: Record<StatusName, ReactNode> = {
  pending: PENDING,
  linked: PENDING,
  not_reached: PENDING,
  draft: PENDING,
  starting: PENDING,
  running: RUNNING,
  executing: RUNNING,
  retrying: <path d="M13 8a5 5 0 11-1.500-3.500L13 6M13 2.500V6H9.500" />,
  waiting: PAUSE,
  paused: PAUSE,
  interrupted: PAUSE,
  completed: disc("M5.200 8.300l2 2 3.700-4.300"),
  failed: disc("M5.800 5.800l4.400 4.400M10.200 5.800l-4.400 4.400"),
  partial: (
    <>
      <circle cx="8" cy="8" r="5.7" />
      <path className={styles.fill} d="M8 2.300a5.700 5.700 0 000 11.400z" />
    </>
  ),
  skipped: <path d="M3 4l5 4-5 4zM12.500 4v8" />,
  blocked: (
    <>
      <circle cx="8" cy="8" r="5.7" />
      <path d="M4.100 11.900l7.800-7.800" />
    </>
  ),
  cancelled: (
    <>
      <circle cx="8" cy="8" r="5.7" />
      <rect className={styles.fill} x="5.7" y="5.7" width="4.600" height="4.600" rx=".8" />
    </>
  ),
};

/** The icon of a status, in the colour of the nearest `data-status`. The word stands beside it. */
export function StatusIcon({ status }: { status: StatusName }) {
  return (
    <svg className={styles.icon} viewBox="0 0 16 16" data-status={status} aria-hidden="true">
      {SHAPES[status]}
    </svg>
  );
}

interface StatusProps {
  status: StatusName;
  /** Other words than the status's own: "Waiting for you". */
  children?: ReactNode;
  /** With a box around it; for the run itself only. */
  pill?: boolean;
}

/** A status: icon, word and colour. */
export function Status({ status, children, pill = false }: StatusProps) {
  return (
    <span className={classes(styles.status, pill && styles.pill)} data-status={status}>
      <StatusIcon status={status} />
      {children ?? STATUS_WORDS[status]}
    </span>
  );
}
