import { TextField } from "@/ui/Field";
import { Icon } from "@/ui/icons";
import styles from "@/ui/SearchField.module.css";

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
