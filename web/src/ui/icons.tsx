/** Every icon of the page: 16 × 16, drawn with the text colour. */
import type { ReactNode } from "react";
import { classes } from "@/ui/classes";
import styles from "@/ui/icons.module.css";

const PATHS = {
  add: <path d="M8 3v10M3 8h10" />,
  remove: <path d="M3 8h10" />,
  equal: <path d="M3 6h10M3 10h10" />,
  unequal: <path d="M3 6h10M3 10h10M10.500 3l-5 10" />,
  history: <path d="M2.5 8a5.5 5.5 0 101.7-4L2.5 5.500M2.5 2.500v3h3M8 5v3.200l2.2 1.3" />,
  flow: (
    <>
      <rect x="1.8" y="5.7" width="4.5" height="4.5" rx="1" />
      <rect x="9.7" y="1.8" width="4.5" height="4.5" rx="1" />
      <rect x="9.7" y="9.7" width="4.5" height="4.5" rx="1" />
      <path d="M6.3 8H8V4h1.700M8 8v4h1.7" />
    </>
  ),
  approval: (
    <>
      <path d="M2.5 8.500V4.200a1.7 1.7 0 011.7-1.700h7.600a1.7 1.7 0 011.7 1.700v4.300M2.5 12.500h11" />
      <path d="M5.5 6.600l2 2 3.4-3.7" />
    </>
  ),
  chat: (
    <path d="M2.5 11.500V4A1.5 1.5 0 014 2.500h8A1.5 1.5 0 0113.5 4v5a1.5 1.5 0 01-1.5 1.500H6l-3.5 3z" />
  ),
  search: (
    <>
      <circle cx="7" cy="7" r="4.5" />
      <path d="M10.5 10.500L14 14" />
    </>
  ),
  settings: (
    <>
      <path d="M8 1.700l5.5 3.150v6.300L8 14.300l-5.5-3.150v-6.300z" />
      <circle cx="8" cy="8" r="2.2" />
    </>
  ),
  sun: (
    <>
      <circle cx="8" cy="8" r="2.8" />
      <path d="M8 1.500v1.300M8 13.200v1.300M1.5 8h1.300M13.2 8h1.300M3.4 3.400l.9.9M11.7 11.700l.9.9M3.4 12.600l.9-.9M11.7 4.300l.9-.9" />
    </>
  ),
  moon: <path d="M13.3 9.600A5.7 5.7 0 016.4 2.700a5.7 5.7 0 106.9 6.900z" />,
  system: (
    <>
      <circle cx="8" cy="8" r="5.7" />
      <path className={styles.solid} d="M8 2.300a5.7 5.7 0 010 11.400z" />
    </>
  ),
  help: (
    <>
      <circle cx="8" cy="8" r="6.3" />
      <path d="M6.2 6.300a1.9 1.9 0 113 1.600c-.8.5-1.2.9-1.2 1.700M8 11.600h0" />
    </>
  ),
  left: <path d="M10 3.500L5.5 8l4.5 4.5" />,
  right: <path d="M6 3.500L10.5 8 6 12.5" />,
  down: <path d="M3.5 6L8 10.5 12.5 6" />,
  up: <path d="M3.5 10.500L8 6l4.5 4.5" />,
  model: (
    <>
      <path d="M8 1.800l1.5 4.2 4.2 1.5-4.2 1.500L8 13.2 6.5 9 2.3 7.5 6.5 6z" />
      <path d="M13 11.500v3M11.5 13h3" />
    </>
  ),
  edit: <path d="M10.8 2.800l2.4 2.400L5.6 12.800l-3 .6.6-3z" />,
  star: (
    <path d="M8 1.900l1.900 3.900 4.300.6-3.100 3 .7 4.300L8 11.700l-3.800 2 .7-4.300-3.100-3 4.300-.6z" />
  ),
  starred: (
    <path
      className={styles.solid}
      d="M8 1.900l1.900 3.900 4.300.6-3.100 3 .7 4.300L8 11.700l-3.800 2 .7-4.300-3.100-3 4.300-.6z"
    />
  ),
  tick: <path d="M3 8.500l3.3 3.300L13 4.8" />,
  brain: (
    <path d="M5 12.500a2.7 2.7 0 01-1.7-4.600A2.6 2.6 0 015 3.6 2.5 2.5 0 018 3a2.5 2.5 0 013 .6 2.6 2.6 0 011.7 4.300A2.7 2.7 0 0111 12.500c-1 1-3 .8-3-.5 0 1.3-2 1.5-3 .5zM8 3v9" />
  ),
  copy: (
    <>
      <rect x="5.5" y="5.5" width="8" height="8" rx="1.5" />
      <path d="M10.5 5.500V4A1.5 1.5 0 009 2.500H4A1.5 1.5 0 002.5 4v5A1.5 1.5 0 004 10.500h1.5" />
    </>
  ),
  retry: <path d="M13 8a5 5 0 11-1.5-3.500L13 6M13 2.500V6H9.5" />,
  stop: <rect className={styles.solid} x="4" y="4" width="8" height="8" rx="1.5" />,
  play: <path d="M4.5 2.800v10.400L13 8z" />,
  pause: <path d="M5.5 3.500v9M10.5 3.500v9" strokeWidth="2" />,
  tool: (
    <path
      d="M9.8 4.300a3.2 3.2 0 014-1.700L11.6 4.800l.4 1.6 1.6.4 2.2-2.200a3.2 3.2 0 01-4.4 4L5.8 14.200a1.5 1.5 0 01-2.1-2.100l5.6-5.600a3.2 3.2 0 01.5-2.200z"
      transform="translate(-1 0)"
    />
  ),
  error: (
    <>
      <circle cx="8" cy="8" r="6.2" />
      <path d="M8 4.700v4M8 11.200h0" />
    </>
  ),
  warning: <path d="M8 2.300L14.3 13H1.700zM8 6.300v3.200M8 11.400h0" />,
  info: (
    <>
      <circle cx="8" cy="8" r="6.2" />
      <path d="M8 7.300v4M8 4.800h0" />
    </>
  ),
  compare: <path d="M5 2.500v11M11 2.500v11M2 6l3-3.500L8 6M8 10l3 3.500L14 10" />,
  branch: (
    <>
      <circle cx="4" cy="3.5" r="1.7" />
      <circle cx="4" cy="12.5" r="1.7" />
      <circle cx="12" cy="5.5" r="1.7" />
      <path d="M4 5.200v5.600M12 7.200c0 2.6-3 2.6-8 3" />
    </>
  ),
  chip: (
    <>
      <rect x="4" y="4" width="8" height="8" rx="1.5" />
      <path d="M6.5 1.500V4M9.5 1.500V4M6.5 12v2.500M9.5 12v2.500M1.5 6.500H4M1.5 9.500H4M12 6.500h2.500M12 9.500h2.5" />
    </>
  ),
  undo: <path d="M3 6.500h6.500a3.5 3.5 0 010 7H6M3 6.500L6 3.500M3 6.500l3 3" />,
  redo: <path d="M13 6.500H6.500a3.5 3.5 0 000 7H10M13 6.500L10 3.500M13 6.500l-3 3" />,
  fit: <path d="M2.5 6V2.500H6M10 2.500h3.500V6M13.5 10v3.500H10M6 13.500H2.500V10" />,
  close: <path d="M4 4l8 8M12 4l-8 8" />,
  trash: <path d="M3 4.500h10M6 4.500V3h4v1.500M4.3 4.500l.6 9h6.200l.6-9" />,
  link: (
    <path d="M6.5 9.500l3-3M7 4.500l1.2-1.200a3 3 0 014.3 4.300L11.3 8.800M9 11.500l-1.2 1.200a3 3 0 01-4.3-4.300L4.7 7.2" />
  ),
  options: (
    <>
      <path d="M2.5 4.500h6M12 4.500h1.500M2.5 11.500H4M7.5 11.500h6" />
      <circle cx="10.2" cy="4.5" r="1.7" />
      <circle cx="5.8" cy="11.5" r="1.7" />
    </>
  ),
  clock: (
    <>
      <circle cx="8" cy="8" r="6" />
      <path d="M8 4.500V8l2.3 1.5" />
    </>
  ),
  lock: (
    <>
      <rect x="3" y="7" width="10" height="6.5" rx="1.2" />
      <path d="M5.2 7V5a2.800 2.800 0 015.600 0v2" />
    </>
  ),
  more: <path d="M3.5 8h0M8 8h0M12.5 8h0" strokeWidth="2.4" />,
  fork: (
    <>
      <circle cx="4" cy="3.5" r="1.7" />
      <circle cx="12" cy="3.5" r="1.7" />
      <circle cx="8" cy="12.5" r="1.7" />
      <path d="M4 5.200c0 2.5 4 2 4 5.600M12 5.200c0 2.5-4 2-4 5.6" />
    </>
  ),
  download: <path d="M8 2.500v8M4.5 7.500L8 11l3.5-3.500M3 13.500h10" />,
  follow: (
    <>
      <circle cx="8" cy="8" r="2" />
      <path d="M8 1.500v3M8 11.500v3M1.5 8h3M11.5 8h3" />
    </>
  ),
  text: <path d="M3 4V3h10v1M8 3v10M6 13h4" />,
  loop: (
    <path d="M3 7.500A4.5 4.5 0 017.5 3H13M11 1l2 2-2 2M13 8.500A4.5 4.5 0 018.5 13H3M5 15l-2-2 2-2" />
  ),
  person: (
    <>
      <circle cx="8" cy="5" r="2.7" />
      <path d="M2.8 13.500c.6-2.8 2.6-4.2 5.2-4.200s4.6 1.4 5.2 4.2" />
    </>
  ),
  braces: (
    <path d="M6 2.500c-2 0-2.2.8-2.2 2.300S3.6 7.3 2.5 8c1.1.7 1.3 1.7 1.3 3.200s.2 2.3 2.2 2.300M10 2.500c2 0 2.2.8 2.2 2.300s.2 2.5 1.3 3.200c-1.1.7-1.3 1.7-1.3 3.200s-.2 2.3-2.2 2.3" />
  ),
  external: <path d="M6.5 3.500h-3v9h9v-3M9.5 2.500h4v4M13 3L7.5 8.5" />,
} satisfies Record<string, ReactNode>;

export type IconName = keyof typeof PATHS;

/** A decorative icon: the words beside it, or the control's label, have its meaning. */
export function Icon({ name, small = false }: { name: IconName; small?: boolean }) {
  return (
    <svg
      className={classes(styles.icon, small && styles.small)}
      viewBox="0 0 16 16"
      aria-hidden="true"
    >
      {PATHS[name]}
    </svg>
  );
}

/** The mark of planwave: two waves. */
export function Logo() {
  return (
    <svg className={styles.logo} viewBox="0 0 22 22" aria-hidden="true">
      <path d="M2 7.500c3-4 6-4 9 0s6 4 9 0" />
      <path d="M2 14.500c3-4 6-4 9 0s6 4 9 0" opacity=".45" />
    </svg>
  );
}
