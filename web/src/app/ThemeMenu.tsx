import { IconButton } from "@/ui/IconButton";
import type { IconName } from "@/ui/icons";
import { Menu } from "@/ui/Menu";
import { type Theme, usePreferences } from "@/ui/preferences";

const THEMES: Record<Theme, { label: string; icon: IconName }> = {
  system: { label: "As the system", icon: "system" },
  light: { label: "Light", icon: "sun" },
  dark: { label: "Dark", icon: "moon" },
};

/** Chooses the theme: light, dark, or that of the system. */
export function ThemeMenu() {
  const { theme, setTheme } = usePreferences();
  const { label, icon } = THEMES[theme];
  return (
    <Menu
      trigger={<IconButton icon={icon} label={`Theme: ${label.toLowerCase()}`} />}
      items={(Object.keys(THEMES) as Theme[]).map((name) => ({
        ...THEMES[name],
        onSelect: () => setTheme(name),
      }))}
    />
  );
}
