import { useState } from "react";
import { useLimits } from "@/api/queries";
import type { LimitResponse } from "@/api/types";
import type { JsonNumber } from "@/json";
import { ErrorNote } from "@/screens/ErrorNote";
import { FilterField } from "@/screens/settings/FilterField";
import styles from "@/screens/settings/SettingsScreen.module.css";
import { formatBytes, formatCount } from "@/ui/format";
import { plainLine } from "@/ui/plainLine";
import { Skeleton } from "@/ui/Skeleton";
import { Tag } from "@/ui/Tag";

function inWords(printed: JsonNumber, unit: string): string {
  const value = Number(printed);
  if (unit === "bytes") return formatBytes(value);
  const number = Number.isInteger(value) ? formatCount(value) : String(value);
  return unit === "count" ? number : `${number} ${unit}`;
}

/** What may not be passed on this service, and the variable that changes it. */
export function LimitList() {
  const limits = useLimits();
  const [filter, setFilter] = useState("");
  if (limits.error) return <ErrorNote error={limits.error} />;
  if (!limits.data) return <Skeleton lines={9} label="The limits are being loaded" />;
  const wanted = filter.trim().toLowerCase();
  const shown = limits.data.limits.filter(({ name, what }) =>
    `${name} ${what}`.toLowerCase().includes(wanted),
  );
  return (
    <>
      <FilterField
        label="Search limits"
        value={filter}
        onChange={setFilter}
        shown={shown.length}
        of={limits.data.limits.length}
      />
      <ul className={styles.rows}>
        {shown.map((limit) => (
          <Limit key={limit.name} limit={limit} />
        ))}
      </ul>
    </>
  );
}

function Limit({ limit }: { limit: LimitResponse }) {
  const { what, value, default: usual, hard_cap: cap, unit, variable } = limit;
  return (
    <li className={styles.row}>
      <div className={styles.grow}>
        <p>{plainLine(what)}</p>
        <p className={styles.faint}>
          <code>{variable}</code>, at most {inWords(cap, unit)}
        </p>
      </div>
      {Number(value) !== Number(usual) && <Tag kind="change">usually {inWords(usual, unit)}</Tag>}
      <b className={styles.value}>{inWords(value, unit)}</b>
    </li>
  );
}
