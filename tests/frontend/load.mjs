// The page that the modules need where they are tested without a browser: none of them touches it at import.
export const module = (name) => import(new URL(`../../widgets/frontend/${name}.js`, import.meta.url));
