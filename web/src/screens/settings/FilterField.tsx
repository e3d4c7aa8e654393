import styles from "@/screens/settings/SettingsScreen.module.css";
import { SearchField } from "@/ui/SearchField";

interface FilterFieldProps {
  label: string;
  value: string;
  onChange: (value: string) => void;
  shown: number;
  of: number;
}

/** A field that filters the list below it, and says how much is left. */
export function FilterField({ label, value, onChange, shown, of }: FilterFieldProps) {
  return (
    <div className={styles.filter}>
      <SearchField label={label} value={value} onChange={onChange} />
      <p className={styles.faint} role="status">
        {shown === of ? `${of} in all` : `${shown} of ${of}`}
      </p>
    </div>
  );
}
