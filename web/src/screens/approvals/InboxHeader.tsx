import type { Ref } from "react";
import { useSearchParams } from "react-router";
import { SearchField } from "@/ui/SearchField";
import { Segmented } from "@/ui/Segmented";
import styles from "./ApprovalsScreen.module.css";
import { TAB, type Tab } from "./inboxTab";

type InboxHeaderProps = {
  tab: Tab;
  /** How many wait, as far as it is known. */
  waiting?: number | undefined;
  filter: string;
  onFilter: (filter: string) => void;
  heading?: Ref<HTMLHeadingElement>;
};

/** The title of the inbox, its two lists, and the filter. */
export function InboxHeader({ tab, waiting = 0, filter, onFilter, heading }: InboxHeaderProps) {
  const [, setParameters] = useSearchParams();
  return (
    <header className={styles.top}>
      <div className={styles.title}>
        <h1 ref={heading} tabIndex={-1}>
          Approvals
        </h1>
        <Segmented<Tab>
          label="Requests that are shown"
          value={tab}
          options={[
            { value: "waiting", label: "Waiting", count: waiting || undefined },
            { value: "answered", label: "Answered" },
          ]}
          onChange={(next) => setParameters(next === "waiting" ? {} : { [TAB]: next })}
        />
      </div>
      {(tab === "answered" || waiting > 0 || filter !== "") && (
        <SearchField label="Filter by run or step" value={filter} onChange={onFilter} />
      )}
    </header>
  );
}
