// Imports a module of the front end; none of them needs a page to be imported.
export const module = (name) => import(new URL(`../../widgets/frontend/${name}.js`, import.meta.url));
