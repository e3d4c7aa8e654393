import { Tabs as Radix } from "radix-ui";
import type { MouseEvent, ReactNode } from "react";
import { Count } from "@/ui/Count";
import { classes } from "@/ui/classes";
import styles from "@/ui/Tabs.module.css";

interface TabsProps<Value extends string> {
  /** The name of the tab list, for screen readers. */
  label: string;
  value: Value;
  tabs: readonly { value: Value; label: string; count?: number }[];
  onChange: (value: Value) => void;
  className?: string | undefined;
  /** A `TabPanel` for each tab. */
  children: ReactNode;
}

/** Tabs, at most five; the chosen one is underlined in ink. */
export function Tabs<Value extends string>(props: TabsProps<Value>) {
  return (
    <Radix.Root
      className={classes(styles.root, props.className)}
      value={props.value}
      onValueChange={(value) => props.onChange(value as Value)}
    >
      <Radix.List className={styles.list} aria-label={props.label}>
        {props.tabs.map((tab) => (
          <Radix.Trigger
            key={tab.value}
            value={tab.value}
            className={styles.tab}
            onMouseDown={focusWithoutRing}
          >
            {tab.label}
            {tab.count !== undefined && <Count value={tab.count} plain />}
          </Radix.Trigger>
        ))}
      </Radix.List>
      {props.children}
    </Radix.Root>
  );
}

/** Radix gives the focus by script, for which a browser draws the ring, after a click too. */
function focusWithoutRing({ currentTarget }: MouseEvent<HTMLElement>): void {
  currentTarget.focus({ focusVisible: false } as FocusOptions);
}

/** What a tab shows; built only while the tab is chosen. */
export function TabPanel(props: { value: string; className?: string; children: ReactNode }) {
  return (
    <Radix.Content value={props.value} className={classes(styles.panel, props.className)}>
      {props.children}
    </Radix.Content>
  );
}
