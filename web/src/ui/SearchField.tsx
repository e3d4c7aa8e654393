import { useEffect, useRef, useState } from "react";
import { TextField } from "@/ui/Field";
import { Icon } from "@/ui/icons";
import styles from "@/ui/SearchField.module.css";
import { TYPING_MS, useDebounced } from "@/ui/useDebounced";

type SearchFieldProps = {
  /** What is searched, said by the empty field: "Goal or title". */
  label: string;
  value: string;
  onChange: (value: string) => void;
};

/** A field that filters what is below it. */
export function SearchField({ label, value, onChange }: SearchFieldProps) {
  return (
    <div className={styles.search}>
      <Icon name="search" small />
      <TextField
        label={label}
        hiddenLabel
        type="search"
        placeholder={label}
        autoComplete="off"
        spellCheck={false}
        value={value}
        onChange={(event) => onChange(event.target.value)}
      />
    </div>
  );
}

/** A field that filters by what is typed once nothing was typed for a moment. */
export function SettledSearchField({ label, value, onChange }: SearchFieldProps) {
  const [typed, setTyped] = useState(value);
  const settled = useDebounced(typed.trim(), TYPING_MS);
  const sent = useRef(value);
  const send = useRef(onChange);
  send.current = onChange;
  useEffect(() => {
    if (settled === sent.current) return;
    sent.current = settled;
    send.current(settled);
  }, [settled]);
  useEffect(() => {
    if (value === sent.current) return;
    // The filter was changed from outside: it was cleared, or the reader went back.
    sent.current = value;
    setTyped(value);
  }, [value]);
  return <SearchField label={label} value={typed} onChange={setTyped} />;
}
